// Package rendezvous is the domain of the plane: events, keys, waits, runs, records, leases, operators and tenants, their limits,
// their validation and the closed set of errors. It does no I/O and reads no clock.
//
// The words are those of docs/design/design.md section 1; the rules are those of docs/spec, cited by number.
package rendezvous
