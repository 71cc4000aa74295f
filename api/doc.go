// Package api is the verbs of docs/spec/api.md, once: [Service.Call] takes a tenant, a verb, the caller's rights and the JSON of a request and answers
// the JSON of a reply. [Service.HTTP] and [Service.ServeNATS] are the two doors to it; both refuse with the same errors.
//
// A verb decodes its request strictly (unknown fields are refused), calls one verb of the store and sends the notices that it names. Registrations and
// events of concurrent callers go through group commits.
package api
