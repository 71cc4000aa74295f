package rendezvous

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of a push registration (push.md section 1). Sizes are bytes unless said otherwise.
const (
	MaxRegistration        = 64 << 10 // all of it
	MaxRegistrationID      = 128
	MaxPushURL             = 2048
	MaxPushToken           = 512
	MaxCredentials         = 4096
	MaxPushHeaders         = 16
	MaxHeaderName          = 64
	MaxHeaderValue         = 1024
	MaxSigningKeys         = 5  // unexpired ones
	MaxRegistrationsPerRun = 10 // of callers, unless push.per_run says otherwise
	MaxPushError           = 512

	DefaultPushTimeout     = 15 * time.Second
	MinPushTimeout         = time.Second
	MaxPushTimeout         = 30 * time.Second
	DefaultMaxAttempts     = 64
	MaxMaxAttempts         = 1000
	DefaultOnRejectLimit   = 8
	MaxOnRejectLimit       = 64
	operatorRegistrationID = "operator:"
)

// Registration is a webhook that follows one run's history: what its caller gives (push.md section 1). Zero fields mean their defaults; [Registration.Check] fills
// them in. Its text and JSON forms mask every secret; what callers are shown is [Registration.View].
type Registration struct {
	RunID string
	ID    string // unique in the run; "" is push- and the run's id
	// URL is absolute. Whether it may be posted to is judged above the store (push.md section 11).
	URL     string
	Token   Secret // echoed in the A2A token headers
	Auth    PushAuth
	Headers []PushHeader
	TLS     PushTLS
	Signing []SigningKey // newest first; none: unsigned

	Projection     Projection
	Events         []string // kind tokens, or AllEvents alone; none is the namespace's default
	IncludePayload *bool    // nil: on for a2a, off for cloudevents
	Follow         string   // FollowRun, the default; FollowChain is not built
	RatePerMinute  int      // not built: 0
	Timeout        time.Duration
	MaxAttempts    int
	OnRejectLimit  int
	Handshake      string // HandshakeNone, the default; the others are not built
	Trace          *bool  // W3C context in headers and body; nil: on for operators, off for callers
}

// Projection makes messages of records.
type Projection string

// The closed set of projections (push.md section 13).
const (
	ProjectionCloudEvents Projection = "cloudevents"
	ProjectionA2A         Projection = "a2a"
)

// Words of fields of a registration.
const (
	AllEvents         = "*"
	FollowRun         = "run"
	FollowChain       = "chain"
	HandshakeNone     = "none"
	HandshakeRequired = "required"
	HandshakeLenient  = "lenient"
)

// PushNamespace says whose registration it is.
type PushNamespace string

// The closed set of namespaces.
const (
	PushCaller   PushNamespace = "caller"
	PushOperator PushNamespace = "operator" // destinations of the configuration
)

// Known reports whether n is a namespace.
func (n PushNamespace) Known() bool { return n == PushCaller || n == PushOperator }

// RegistrationNamespace is the namespace of a registration of that id. The ids that a caller may not use are more: [CheckCallerRegistration].
func RegistrationNamespace(id string) PushNamespace {
	if strings.HasPrefix(id, operatorRegistrationID) {
		return PushOperator
	}
	return PushCaller
}

// OperatorRegistration is the id of the registrations of an operator's destination.
func OperatorRegistration(name string) string { return operatorRegistrationID + name }

// DefaultRegistrationID is the id of a run's registration that names none.
func DefaultRegistrationID(run string) string { return "push-" + run }

// CheckRegistrationID judges an id: 1..128 bytes of UTF-8 without control characters (PU-5).
func CheckRegistrationID(field, id string) error { return pushText(field, id, 1, MaxRegistrationID) }

// CheckCallerRegistration refuses callers the operator's ids, in any letter case (PU-5).
func CheckCallerRegistration(field, id string) error {
	if n := len(operatorRegistrationID); len(id) >= n && strings.EqualFold(id[:n], operatorRegistrationID) {
		return Errorf(CodeUnauthorized, "%s: ids beginning %q are the operator's destinations; choose another id", field, operatorRegistrationID).With("field", field)
	}
	return nil
}

// pushText judges a text of a registration. Its faults are invalid, over a limit too, and never repeat the value.
func pushText(field, s string, least, most int) error {
	if len(s) > most {
		return InvalidField(field, "%d bytes are over the limit of %d", len(s), most).With("limit", most).With("value", len(s))
	}
	return checkText(field, s, least, most)
}

// pushNumber judges a number within bounds, 0 meaning def.
func pushNumber(field string, n, def, least, most int) (int, error) {
	if n == 0 {
		return def, nil
	}
	if n < least || n > most {
		return n, InvalidField(field, "%d is outside %d..%d", n, least, most).With("limit", most).With("value", n)
	}
	return n, nil
}

// Check judges a registration in every field at now, and answers it with defaults filled in and its events as a set. Faults are invalid, name the field and
// never repeat a value; a registration that is too large as a whole is too_large; what this build does not have is refused by its name. Who may use the id
// ([CheckCallerRegistration]) and where it may be posted to is judged by others.
func (r Registration) Check(now time.Time) (Registration, error) {
	if err := CheckID("run_id", r.RunID); err != nil {
		return r, err
	}
	if r.ID == "" {
		r.ID = DefaultRegistrationID(r.RunID)
	}
	if err := CheckRegistrationID("id", r.ID); err != nil {
		return r, err
	}
	if err := CheckPushURL("url", r.URL); err != nil {
		return r, err
	}
	if err := checkPushToken(r.Token); err != nil {
		return r, err
	}
	for _, check := range [...]func() error{
		func() error { return r.Auth.check() }, func() error { return checkPushHeaders(r.Headers) }, func() error { return r.TLS.check(now) },
		r.unbuilt,
	} {
		if err := check(); err != nil {
			return r, err
		}
	}
	var err error
	if r.Signing, err = checkSigning(r.Signing, now); err != nil {
		return r, err
	}
	if r, err = r.filled(); err != nil {
		return r, err
	}
	if n := r.size(); n > MaxRegistration {
		return r, OverLimit("registration", MaxRegistration, n)
	}
	return r, nil
}

// CheckPushURL judges a URL by its shape: absolute, with a host, of at most 2,048 bytes. Its text is in no error: paths and queries may be secrets.
func CheckPushURL(field, text string) error {
	if err := pushText(field, text, 1, MaxPushURL); err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || u.Opaque != "" || u.Hostname() == "" {
		return InvalidField(field, "is not an absolute URL with a host, such as https://example.org/hook")
	}
	if scheme := strings.ToLower(u.Scheme); scheme != "https" && scheme != "http" {
		return InvalidField(field, "is of another scheme than https and http")
	}
	return nil
}

// unbuilt refuses by name what this build does not have, and words of no set.
func (r Registration) unbuilt() error {
	switch r.Follow {
	case "", FollowRun:
	case FollowChain:
		return InvalidField("follow", "chain is not built; register on the next run too, or leave it out")
	default:
		return InvalidField("follow", "is none of run, chain")
	}
	switch r.Handshake {
	case "", HandshakeNone:
	case HandshakeRequired, HandshakeLenient:
		return InvalidField("handshake", "%s is not built; leave it out", r.Handshake)
	default:
		return InvalidField("handshake", "is none of none, required, lenient")
	}
	if r.RatePerMinute < 0 {
		return InvalidField("rate_per_minute", "%d is negative", r.RatePerMinute).With("value", r.RatePerMinute)
	}
	if r.RatePerMinute != 0 {
		return InvalidField("rate_per_minute", "is not built; leave it out").With("value", r.RatePerMinute)
	}
	return nil
}

// filled is r with its defaults.
func (r Registration) filled() (Registration, error) {
	var err error
	namespace := RegistrationNamespace(r.ID)
	switch r.Projection {
	case "":
		r.Projection = ProjectionCloudEvents
	case ProjectionCloudEvents, ProjectionA2A:
	default:
		return r, InvalidField("projection", "is none of cloudevents, a2a")
	}
	if r.Events, err = CheckPushEvents("events", r.Events, namespace); err != nil {
		return r, err
	}
	if r.IncludePayload == nil {
		on := r.Projection == ProjectionA2A
		r.IncludePayload = &on
	}
	if r.Trace == nil {
		on := namespace == PushOperator
		r.Trace = &on
	}
	if r.Timeout == 0 {
		r.Timeout = DefaultPushTimeout
	}
	if r.Timeout < MinPushTimeout || r.Timeout > MaxPushTimeout {
		return r, InvalidField("timeout", "%s is outside %s..%s", r.Timeout, MinPushTimeout, MaxPushTimeout).
			With("limit", MaxPushTimeout.String()).With("value", r.Timeout.String())
	}
	if r.MaxAttempts, err = pushNumber("max_attempts", r.MaxAttempts, DefaultMaxAttempts, 1, MaxMaxAttempts); err != nil {
		return r, err
	}
	if r.OnRejectLimit, err = pushNumber("on_reject_limit", r.OnRejectLimit, DefaultOnRejectLimit, 1, MaxOnRejectLimit); err != nil {
		return r, err
	}
	r.Follow, r.Handshake = FollowRun, HandshakeNone
	return r, nil
}

// size is the registration's texts together.
func (r Registration) size() int {
	n := len(r.RunID) + len(r.ID) + len(r.URL) + len(r.Token.Reveal()) + r.Auth.size() + len(r.TLS.Certificates) + len(r.TLS.Key.Reveal()) + len(r.TLS.Authorities)
	for _, h := range r.Headers {
		n += len(h.Name) + len(h.Value.Reveal())
	}
	for _, k := range r.Signing {
		n += len(k.Key.Reveal())
	}
	for _, e := range r.Events {
		n += len(e)
	}
	return n
}

// Kinds whose records a registration takes where it names none (push.md section 13).
var (
	operatorEvents = []string{string(RunCompleted), string(RunFailed), string(RunCancelled), string(RunTimedOut)}
	callerEvents   = []string{"run.", "wait."} // what their tokens begin with
)

// CheckPushEvents judges the kinds a registration takes and answers them as a set, in the order of bytes; none is the namespace's default. Unknown tokens are
// refused.
func CheckPushEvents(field string, events []string, namespace PushNamespace) ([]string, error) {
	var set []string
	switch {
	case len(events) > 0:
	case namespace == PushOperator:
		set = slices.Clone(operatorEvents)
	default:
		for k := range kinds {
			if slices.ContainsFunc(callerEvents, func(begin string) bool { return strings.HasPrefix(string(k), begin) }) {
				set = append(set, string(k))
			}
		}
	}
	for i, e := range events {
		if e == AllEvents {
			return []string{AllEvents}, restKnown(field, events)
		}
		if !Kind(e).Known() {
			return nil, unknownEvent(field, i)
		}
		set = append(set, e)
	}
	slices.Sort(set)
	return slices.Compact(set), nil
}

func restKnown(field string, events []string) error {
	for i, e := range events {
		if e != AllEvents && !Kind(e).Known() {
			return unknownEvent(field, i)
		}
	}
	return nil
}

func unknownEvent(field string, i int) error {
	return InvalidField(field, "number %d is no kind of record, such as %s, and not %q", i+1, RunCompleted, AllEvents)
}

// Destination is an operator's push destination as a store is told of it: its rows hold no more (push.md section 1).
type Destination struct {
	Name   string
	Events []string // as of a registration
	Types  []string // of workflows whose runs are registered; none is all
}

// CheckDestinations judges the destinations a store is opened with and answers them with their events as sets: names are unique and not blank (PU-6).
func CheckDestinations(list []Destination) ([]Destination, error) {
	out := slices.Clone(list)
	names := map[string]bool{}
	for i, d := range list {
		if strings.TrimSpace(d.Name) == "" {
			return nil, InvalidField("push.destinations", "number %d has a blank name", i+1)
		}
		if err := CheckRegistrationID("push.destinations", OperatorRegistration(d.Name)); err != nil {
			return nil, err
		}
		if names[d.Name] {
			return nil, InvalidField("push.destinations", "the name %q is there twice", d.Name)
		}
		names[d.Name] = true
		var err error
		if out[i].Events, err = CheckPushEvents("push.destinations."+d.Name+".events", d.Events, PushOperator); err != nil {
			return nil, err
		}
		for _, t := range d.Types {
			if err := CheckID("push.destinations."+d.Name+".types", t); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
