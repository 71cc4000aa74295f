package outcome

import (
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// Advice is what a receiver asked for with Retry-After.
type Advice struct {
	Wait   time.Duration // 0: none
	Capped bool          // it asked for longer than the cap
}

// ReadAdvice reads Retry-After of an answer that came at now: seconds in digits, or an HTTP date in any of its three forms, measured from the answer's Date where
// that is valid, else from now, and rounded up to the millisecond. The longest of several counts. What is 0, over, signed, fractional or garbled is no advice.
func ReadAdvice(header textproto.MIMEHeader, now time.Time, most time.Duration) Advice {
	var longest Advice
	for _, value := range header.Values("Retry-After") {
		advice := readWait(strings.TrimSpace(value), header, now, most)
		if advice.Wait > longest.Wait || advice.Wait == longest.Wait && advice.Capped {
			longest = advice
		}
	}
	return longest
}

func readWait(value string, header textproto.MIMEHeader, now time.Time, most time.Duration) Advice {
	if value == "" {
		return Advice{}
	}
	if strings.Trim(value, "0123456789") == "" {
		return seconds(value, most)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return Advice{}
	}
	from := now
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		from = date
	}
	return capped(ceil(at.Sub(from)), most)
}

// seconds reads any number of digits.
func seconds(digits string, most time.Duration) Advice {
	var n time.Duration
	for _, digit := range digits {
		if n = n*10 + time.Duration(digit-'0'); n > most/time.Second {
			return Advice{Wait: most, Capped: true}
		}
	}
	return Advice{Wait: n * time.Second}
}

func capped(wait, most time.Duration) Advice {
	if wait > most {
		return Advice{Wait: most, Capped: true}
	}
	return Advice{Wait: max(wait, 0)}
}

// ceil rounds up to the millisecond.
func ceil(d time.Duration) time.Duration {
	if down := d.Truncate(time.Millisecond); down < d {
		return down + time.Millisecond
	}
	return d.Truncate(time.Millisecond)
}
