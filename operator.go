package rendezvous

// Basis says how the plane knows who an operator is.
type Basis string

// The closed set of bases.
const (
	BasisAuthenticated Basis = "authenticated" // a token or credential said so
	BasisAsserted      Basis = "asserted"      // the caller said so
	BasisConnected     Basis = "connected"     // known by its connection alone
)

// Operator is who asked: a person or a credential. Both parts, or no operator at all.
type Operator struct {
	Actor string `json:"actor"`
	Basis Basis  `json:"basis"`
}

// Check judges an operator.
func (o *Operator) Check(field string) error {
	if o == nil {
		return nil
	}
	if err := CheckID(field+".actor", o.Actor); err != nil {
		return err
	}
	switch o.Basis {
	case BasisAuthenticated, BasisAsserted, BasisConnected:
		return nil
	}
	return InvalidField(field+".basis", "%q is none of authenticated, asserted, connected", o.Basis)
}

// Trace is a W3C trace context as it travels: in headers, with the event, with the wait.
type Trace struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// Kept is the trace without parts that are too long to keep or that no header can carry: tracing never refuses an event, nor parks who is to send it on.
func (t Trace) Kept() Trace {
	if len(t.Parent) > MaxTrace || !printable(t.Parent, 0x20) {
		return Trace{}
	}
	if len(t.State) > MaxTrace || !printable(t.State, 0x20) {
		t.State = ""
	}
	return t
}
