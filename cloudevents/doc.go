// Package cloudevents reads and writes CloudEvents 1.0 as docs/spec/api.md section 1 wants them: binary, structured and batch mode, over any
// transport whose headers are name → values. It is stricter than the standard where the contract is: invalid UTF-8, lone surrogates, members given
// twice, bad extension names and bad times are refused, each with an error naming the attribute.
//
// An event that cannot be read refuses itself alone: in a batch the others stand.
package cloudevents
