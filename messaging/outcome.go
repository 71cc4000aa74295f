package messaging

import (
	"strconv"
	"strings"
	"time"
)

// Outcome is a handler's verdict on one message.
type Outcome struct {
	verdict verdict
	after   time.Duration
	reason  string
}

type verdict uint8

const (
	verdictRetry verdict = iota // the zero Outcome: a message a handler forgot comes again
	verdictAck
	verdictTerm
	verdictRelease
)

// Ack: done, and the notices that follow from it are acknowledged by JetStream.
func Ack() Outcome { return Outcome{verdict: verdictAck} }

// Retry: infrastructure trouble. The message comes again after an exponential, jittered delay up to 30 s by its number of deliveries, and not
// before after (which is cut to 30 s too). It counts against nothing.
func Retry(after time.Duration) Outcome { return Outcome{verdict: verdictRetry, after: after} }

// Term: it cannot ever work, and that is recorded in the store or in REJECTED. The reason shows in an advisory: no payload in it.
func Term(reason string) Outcome { return Outcome{verdict: verdictTerm, reason: reason} }

// Release: shutting down; the message is for somebody else, at once.
func Release() Outcome { return Outcome{verdict: verdictRelease} }

// String is the outcome's word, for logs and metrics: ack, retry, term, release.
func (o Outcome) String() string {
	return [...]string{"retry", "ack", "term", "release"}[o.verdict]
}

// Jitter is a source of randomness in [0, 1).
type Jitter func() float64

const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 30 * time.Second
	maxReason  = 256
)

// acknowledgement is the one place that turns an outcome into what JetStream is told.
func (o Outcome) acknowledgement(delivered uint64, jitter Jitter) []byte {
	switch o.verdict {
	case verdictAck:
		return []byte("+ACK")
	case verdictTerm:
		return []byte("+TERM " + oneLine(o.reason, maxReason))
	case verdictRelease:
		return []byte("-NAK")
	default:
		delay := max(min(o.after, retryMost), backoff(delivered, retryFirst, retryMost, jitter))
		return []byte(`-NAK {"delay": ` + strconv.FormatInt(int64(delay), 10) + `}`)
	}
}

// backoff is the delay after the n-th try (from 1): first doubling up to most, of which the upper half is random.
func backoff(n uint64, first, most time.Duration, jitter Jitter) time.Duration {
	d := most
	if shift := max(n, 1) - 1; shift < 32 && first<<shift < most {
		d = first << shift
	}
	return d/2 + time.Duration(jitter()*float64(d-d/2))
}

// oneLine makes s fit for a header or an acknowledgement: valid UTF-8 without control characters, at most limit bytes.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || (r >= 0x7f && r <= 0x9f) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return strings.TrimSpace(s)
}
