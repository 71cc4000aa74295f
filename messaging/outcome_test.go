package messaging

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWhatTheBrokerIsToldForEachOutcome(t *testing.T) {
	none := func() float64 { return 0 }
	for want, o := range map[string]Outcome{
		"+ACK":                      Ack(),
		"-NAK":                      Release(),
		"+TERM over the limit":      Term("over the\nlimit"),
		`-NAK {"delay": 125000000}`: {}, // the zero Outcome is a Retry
	} {
		if got := string(o.acknowledgement(1, none)); got != want {
			t.Errorf("%v: told %q, want %q", o, got, want)
		}
	}
	long := string(Term(strings.Repeat("ü", 1000)).acknowledgement(1, none))
	if len(long) > maxReason+len("+TERM ") || !utf8.ValidString(long) {
		t.Errorf("a long reason makes %d bytes, valid %v", len(long), utf8.ValidString(long))
	}
}

func TestRetriesBackOffExponentiallyWithJitterUpTo30Seconds(t *testing.T) {
	delay := func(o Outcome, delivered uint64, jitter float64) time.Duration {
		var nak struct{ Delay time.Duration }
		text := strings.TrimPrefix(string(o.acknowledgement(delivered, func() float64 { return jitter })), "-NAK ")
		if err := json.Unmarshal([]byte(text), &nak); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return nak.Delay
	}
	for delivered, full := range map[uint64]time.Duration{
		1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 5: 4 * time.Second, 8: 30 * time.Second, 1000: 30 * time.Second, 1 << 60: 30 * time.Second,
	} {
		if low, high := delay(Retry(0), delivered, 0), delay(Retry(0), delivered, 1); low != full/2 || high != full {
			t.Errorf("delivery %d: %v..%v, want %v..%v", delivered, low, high, full/2, full)
		}
	}
	if got := delay(Retry(5*time.Second), 1, 0); got != 5*time.Second {
		t.Errorf("not before 5s: %v", got)
	}
	if got := delay(Retry(time.Hour), 1, 0); got != 30*time.Second {
		t.Errorf("an hour is cut to 30s: %v", got)
	}
}
