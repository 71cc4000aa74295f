// Package request makes the headers of a push (push.md section 9): one function from what a registration asks for, the message and the attempt to the exact list,
// in letter case and order.
package request

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/project"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

// Input is what the headers of one attempt are made of.
type Input struct {
	Message      project.Message
	Registration rendezvous.Registration
	Attempts     int       // charged failures in a row before this attempt
	At           time.Time // of the attempt
	Trace        rendezvous.Trace
	Bearer       rendezvous.Secret // of auth oauth2: the token
	Version      string            // of this build
}

// Headers answers the headers. A header or key that cannot be used is an error of class config, with the reason the registration is parked for.
func Headers(in Input) ([]transport.Header, *transport.Error) {
	reg := in.Registration
	m := standardwebhooks.NewMessage(in.Message.ID, in.At, in.Message.Body)
	list := []transport.Header{
		{Name: "Content-Type", Value: in.Message.ContentType},
		{Name: "Accept-Encoding", Value: "identity"},
		{Name: "User-Agent", Value: UserAgent(in.Version)},
		{Name: standardwebhooks.HeaderID, Value: m.ID},
		{Name: standardwebhooks.HeaderTimestamp, Value: m.Timestamp},
	}
	keys, fault := signing(reg.Signing, in.At)
	if fault != nil {
		return nil, fault
	}
	list = add(list, standardwebhooks.HeaderSignature, standardwebhooks.Sign(keys, m))
	list = add(list, "rendezvous-attempt", strconv.Itoa(in.Attempts+1))
	authorization, fault := authorize(reg.Auth, in.Bearer)
	if fault != nil {
		return nil, fault
	}
	list = add(list, "Authorization", authorization)
	list = add(list, "X-A2A-Notification-Token", reg.Token.Reveal())
	list = add(list, "A2A-Notification-Token", reg.Token.Reveal())
	if reg.Projection == rendezvous.ProjectionA2A {
		list = add(list, "A2A-Version", "1.0")
	}
	list = add(list, "traceparent", in.Trace.Parent)
	if in.Trace.Parent != "" {
		list = add(list, "tracestate", in.Trace.State)
	}
	for _, h := range reg.Headers {
		if rendezvous.ReservedHeader(h.Name) {
			return nil, transport.Unusable(rendezvous.ParkBadHeader, transport.CodeBadHeader, "a header of the registration has a name that is the plane's own", nil)
		}
		list = append(list, transport.Header{Name: h.Name, Value: h.Value.Reveal()})
	}
	return list, nil
}

// UserAgent names the plane to receivers.
func UserAgent(version string) string { return "Rendezvous/" + version }

// add appends a header that has a value.
func add(list []transport.Header, name, value string) []transport.Header {
	if value == "" {
		return list
	}
	return append(list, transport.Header{Name: name, Value: value})
}

// signing reads the keys that sign at that instant, in the registration's order, newest first (PU-75).
func signing(keys []rendezvous.SigningKey, at time.Time) ([]standardwebhooks.SigningKey, *transport.Error) {
	var usable []standardwebhooks.SigningKey
	for _, key := range keys {
		if key.Expired(at) {
			continue
		}
		parsed, err := standardwebhooks.ParseSigningKey(key.Key.Reveal())
		if err != nil {
			return nil, transport.Unusable(rendezvous.ParkBadKey, transport.CodeBadKey, "a signing key of the registration cannot be used: "+err.Error(), err)
		}
		usable = append(usable, parsed)
	}
	return usable, nil
}

// authorize is the value of Authorization. Without the credentials that the registration asks for nothing is sent.
func authorize(auth rendezvous.PushAuth, bearer rendezvous.Secret) (string, *transport.Error) {
	switch auth.Kind {
	case rendezvous.AuthNone:
		return "", nil
	case rendezvous.AuthScheme:
		if auth.Credentials.Set() {
			return auth.Scheme + " " + auth.Credentials.Reveal(), nil
		}
	case rendezvous.AuthBasic:
		if auth.User != "" && auth.Password.Set() {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(auth.User+":"+auth.Password.Reveal())), nil
		}
	case rendezvous.AuthOAuth2:
		if bearer.Set() {
			return "Bearer " + bearer.Reveal(), nil
		}
	}
	return "", transport.Unusable(rendezvous.ParkBadHeader, transport.CodeBadHeader, "the registration's credentials are missing", nil)
}
