// Package transport makes every outbound request of the plane (push.md section 10). It speaks HTTP/1.1 itself, since a general client does what this one must not:
// follow redirects, keep cookies, inflate bodies, heed a proxy of the environment, write names of headers its own way, rewrite a path, or send a request twice.
//
// [Client.Do] judges the URL, takes an idle connection or makes one, writes the request and reads the answer:
//
//	judge ── resolve ── dial ── TLS ── write ── first byte ── header section ── body
//	         5 s        5 s     5 s             10 s                            1 s        and the request's timeout over all
//
// The status is final when the header section is complete: nothing that happens to the body later makes another outcome of it. Everything before that which goes
// wrong is an [*Error] with a class. Where a byte of the request was written by then, the receiver may have taken it ([Attempt.Written]); where none was, and the
// connection was an old one, the request moves to a fresh one.
//
// Every connection goes to an address that was judged, and the socket is judged again as it connects. Connections are kept for reuse by namespace, host, client
// certificate and authorities together, so none carries what it was not opened for: at most 60 s idle, at most 10 min in all. A connection that the receiver closes
// while it is idle is noticed and never used.
//
// All time comes from a clock.Clock.
package transport
