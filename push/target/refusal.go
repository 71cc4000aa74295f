package target

import (
	"net/netip"

	"github.com/rendezvous-events/rendezvous"
)

// Rule names why a target was refused: a closed set. All but [ForbiddenAddress] are what a registration is parked with, as they are.
type Rule string

// The rules.
const (
	MalformedURL          = Rule(rendezvous.ParkMalformedURL)
	NotHTTPS              = Rule(rendezvous.ParkNotHTTPS)
	BadPort               = Rule(rendezvous.ParkBadPort)
	HostNotGranted        = Rule(rendezvous.ParkHostNotGranted)
	ForbiddenLiteral      = Rule(rendezvous.ParkForbiddenLiteral)
	ForbiddenAddress Rule = "forbidden_address" // the name stands for an address that is refused
)

// Refusal says that a target may not be used, and by which rule. Its text shows neither path nor query, nor an address that a name stands for.
type Refusal struct {
	Rule    Rule
	Host    string     // canonical; "" where the URL has none that can be read
	Reason  string     // begins with the host, where there is one
	Address netip.Addr // of ForbiddenAddress: for operators' eyes only
}

func (r *Refusal) Error() string { return string(r.Rule) + ": " + r.Reason }

// Park is the reason a registration is parked with at once; false for [ForbiddenAddress], which is tried again.
func (r *Refusal) Park() (rendezvous.ParkReason, bool) {
	return rendezvous.ParkReason(r.Rule), r.Rule != ForbiddenAddress
}

func (t Target) refuse(rule Rule, reason string) *Refusal {
	return &Refusal{Rule: rule, Host: t.Host(), Reason: t.Host() + " " + reason}
}
