// Package target says where a push may go (push.md section 11): it reads URLs, judges them and the addresses their names stand for, and offers the hook with which
// every socket is judged again.
//
// A [Policy] is made of the settings and never changes; a reload makes another. It is asked three times, each time with the same rules:
//
//	Judge    the URL: at Put, and before every attempt
//	Resolve  its addresses, before a connection is made; one bad address refuses the name
//	Control  the address a socket is about to connect to, whatever was judged before
//
// Callers' registrations go by https to granted hosts on granted ports, and to public addresses only. Operators' destinations are configuration and exempt from that,
// but not from the few addresses that are nobody's receiver: the metadata services of clouds above all.
//
// A refusal is a [*Refusal] with one of a closed set of rules. Its text names the host, never path or query, and never an address that a name resolved to, which
// would show callers what is inside.
package target
