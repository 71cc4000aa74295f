package rendezvous

import (
	"cmp"
	"time"
)

// PushState is where a registration is in its life.
type PushState string

// The closed set of states: exactly one at a time. A completed or deleted registration has no row.
const (
	PushLive   PushState = "live"   // due from next_attempt_at on
	PushIdle   PushState = "idle"   // nothing to send: an append wakes it
	PushParked PushState = "parked" // until somebody unparks it
)

// Cursor is a registration's place in the history: the first message not yet accepted, compared as a pair.
type Cursor struct {
	NextSeq   int64 `json:"next_seq"`
	NextIndex int   `json:"next_index"` // 0 unless a record of several messages was accepted in part
}

// Compare orders cursors.
func (c Cursor) Compare(o Cursor) int {
	return cmp.Or(cmp.Compare(c.NextSeq, o.NextSeq), cmp.Compare(c.NextIndex, o.NextIndex))
}

// ParkReason says why a registration is parked.
type ParkReason string

// The closed set of reasons (push.md section 8).
const (
	ParkGone               ParkReason = "gone"
	ParkExhausted          ParkReason = "exhausted"
	ParkExpired            ParkReason = "expired"
	ParkRejected           ParkReason = "rejected"
	ParkMalformedURL       ParkReason = "malformed_url"
	ParkNotHTTPS           ParkReason = "not_https"
	ParkHostNotGranted     ParkReason = "host_not_granted"
	ParkForbiddenLiteral   ParkReason = "forbidden_literal"
	ParkBadPort            ParkReason = "bad_port"
	ParkBadHeader          ParkReason = "bad_header"
	ParkBadKey             ParkReason = "bad_key"
	ParkConsentRefused     ParkReason = "consent_refused"
	ParkCredentialsErased  ParkReason = "credentials_erased"
	ParkDestinationRemoved ParkReason = "destination_removed"
	ParkWorkerLost         ParkReason = "worker_lost"
	ParkFault              ParkReason = "fault" // exhausted, the last outcome being a fault
	ParkByOperator         ParkReason = "operator"
)

// ParkReasons is all of them.
var ParkReasons = [...]ParkReason{
	ParkGone, ParkExhausted, ParkExpired, ParkRejected, ParkMalformedURL, ParkNotHTTPS, ParkHostNotGranted, ParkForbiddenLiteral, ParkBadPort, ParkBadHeader,
	ParkBadKey, ParkConsentRefused, ParkCredentialsErased, ParkDestinationRemoved, ParkWorkerLost, ParkFault, ParkByOperator,
}

// Known reports whether r is one of them.
func (r ParkReason) Known() bool {
	for _, k := range ParkReasons {
		if r == k {
			return true
		}
	}
	return false
}

// PushClass is what an attempt came to (push.md section 6).
type PushClass string

// The closed set of classes.
const (
	ClassAccepted  PushClass = "accepted"
	ClassGone      PushClass = "gone"
	ClassRejected  PushClass = "rejected"
	ClassRefused   PushClass = "refused"
	ClassThrottled PushClass = "throttled"
	ClassRedirect  PushClass = "redirect"
	ClassFailed    PushClass = "failed"
	ClassSilent    PushClass = "silent"
	ClassForbidden PushClass = "forbidden"
	ClassConfig    PushClass = "config"
	ClassAuth      PushClass = "auth"
	ClassProxy     PushClass = "proxy"
	ClassOwn       PushClass = "own" // not the receiver's: our store, a shutdown, a lost worker
	ClassFault     PushClass = "fault"
	ClassSkipped   PushClass = "skipped" // no attempt: an operator went past the record
)

// PushClasses is all of them.
var PushClasses = [...]PushClass{
	ClassAccepted, ClassGone, ClassRejected, ClassRefused, ClassThrottled, ClassRedirect, ClassFailed, ClassSilent, ClassForbidden, ClassConfig, ClassAuth, ClassProxy,
	ClassOwn, ClassFault, ClassSkipped,
}

// Known reports whether c is one of them.
func (c PushClass) Known() bool {
	for _, k := range PushClasses {
		if c == k {
			return true
		}
	}
	return false
}

// PushPhases are the times of an attempt. Queued is apart: it is none of the others' part.
type PushPhases struct {
	DNS       time.Duration `json:"dns_ns,omitzero"`
	Connect   time.Duration `json:"connect_ns,omitzero"`
	TLS       time.Duration `json:"tls_ns,omitzero"`
	FirstByte time.Duration `json:"first_byte_ns,omitzero"`
	Total     time.Duration `json:"total_ns,omitzero"`
	Queued    time.Duration `json:"queued_ns,omitzero"`
}

// PushAttempt is an entry of a registration's attempt log (push.md section 10). It holds no path or query of the URL and no secret.
type PushAttempt struct {
	ID      string     `json:"id,omitzero"`      // names the entry, for Log
	No      int64      `json:"attempt_no"`       // which attempt of the registration's life; the store gives it
	Seq     int64      `json:"seq,omitzero"`     // the message
	Index   int        `json:"index,omitzero"`   //
	At      time.Time  `json:"at"`               // when it was started
	Phases  PushPhases `json:"phases,omitzero"`  //
	Class   PushClass  `json:"outcome"`          //
	Unknown bool       `json:"unknown,omitzero"` // whether the receiver took it is not known
	Status  int        `json:"status,omitzero"`  // of the answer; 0: silent
	Code    string     `json:"code,omitzero"`    // of an error
	Error   string     `json:"error,omitzero"`   // ≤ 512 bytes
	Address string     `json:"address,omitzero"` // that was dialled; of operators' destinations only
	// Response is the beginning of the answer's body, escaped to text.
	Response      string    `json:"response,omitzero"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"` // after a charged failure
	AdviceCapped  bool      `json:"advice_capped,omitzero"`   // the receiver asked for a longer wait than push.advice_cap
	Worker        string    `json:"worker,omitzero"`
	Test          bool      `json:"test,omitzero"` // of push.test
	// A skip: who went past the record, and why.
	Actor  string `json:"actor,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// MaxPushResponse is how much of an answer's body an entry may hold, in bytes: escapes count.
const MaxPushResponse = 16 << 10

// Check judges an entry before it is stored, and answers it in whole microseconds.
func (a PushAttempt) Check() (PushAttempt, error) {
	if !a.Class.Known() {
		return a, InvalidField("class", "%.32q is no class of attempts", a.Class)
	}
	if err := pushText("error", a.Error, 0, MaxPushError); err != nil {
		return a, err
	}
	for _, f := range [...]struct {
		name, value string
		most        int
	}{{"id", a.ID, MaxBatchID}, {"code", a.Code, MaxID}, {"address", a.Address, MaxID}, {"worker", a.Worker, MaxID}, {"actor", a.Actor, MaxID}} {
		if err := pushText(f.name, f.value, 0, f.most); err != nil {
			return a, err
		}
	}
	if len(a.Response) > MaxPushResponse {
		return a, OverLimit("response", MaxPushResponse, len(a.Response))
	}
	if a.Seq < 0 || a.Index < 0 || a.Status < 0 {
		return a, InvalidField("attempt", "seq, index and status are 0 or more")
	}
	for _, at := range [...]time.Time{a.At, a.NextAttemptAt} {
		if err := CheckInstant("attempt", at); err != nil {
			return a, err
		}
	}
	a.At, a.NextAttemptAt = Instant(a.At), DueInstant(a.NextAttemptAt)
	return a, nil
}
