package api

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// An API without tokens is open to everybody on this machine, and so it would be to every page that a browser on it shows: a page may send POST requests
// anywhere, if they look like a form's, and any name may be made to lead to 127.0.0.1 (DNS rebinding). What tells such requests from a program's is what
// browsers never leave out: the Origin of a POST, and the Host that the page knows the server by.

// local refuses what a page of elsewhere sends.
func local(r *http.Request) error {
	if r.Host != "" && !loopback(r.Host) {
		return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this API has no tokens, so it answers to loopback names only, not to Host %q; call it as localhost or 127.0.0.1, or configure tokens",
			cloudevents.ShownName(r.Host)).With("field", "host")
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !loopback(u.Host) {
			return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this API has no tokens, so it takes nothing from web pages of elsewhere, such as of Origin %q; configure tokens to let them in",
				cloudevents.ShownName(origin)).With("field", "origin")
		}
	}
	return nil
}

// loopback reports whether a host, with or without a port, is this machine by its own name or address.
func loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || (ip != nil && ip.IsLoopback())
}

// saysJSON refuses bodies that say they are something else: a page may send a form's content types to any server, JSON only where that server lets it. A
// program that says nothing is taken at its word.
func saysJSON(h http.Header) error {
	if said := h.Get("Content-Type"); said != "" && !cloudevents.IsJSON(said) {
		return rendezvous.InvalidField("content-type", "%q is not JSON; send application/json (curl: --json, or -H 'content-type: application/json')", cloudevents.ShownName(said))
	}
	return nil
}
