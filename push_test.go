package rendezvous_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

var pushNow = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// goodKey is the key of V1 in push.md section 14.
var goodKey = rendezvous.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

func registration() rendezvous.Registration {
	return rendezvous.Registration{RunID: "r-1", URL: "https://example.org/hook"}
}

// PU-8: a secret shows in no form that is printed, encoded or logged, wherever it stands.
func TestPU8SecretsShowAMask(t *testing.T) {
	const planted = "pl4nted"
	s := rendezvous.NewSecret(planted)
	type deep struct {
		Open   rendezvous.Secret
		hidden rendezvous.Secret
		List   []rendezvous.Secret
		Map    map[string]rendezvous.Secret
		Any    any
		At     *rendezvous.Secret
	}
	r := registration()
	r.Token, r.Auth = s, rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer", Credentials: s}
	r.Headers, r.Signing = []rendezvous.PushHeader{{Name: "X-Key", Value: s}}, []rendezvous.SigningKey{{Key: s}}
	all := []any{s, &s, deep{s, s, []rendezvous.Secret{s}, map[string]rendezvous.Secret{"a": s}, s, &s}, r, &r, r.View(), fmt.Errorf("%w: %v", rendezvous.ErrInvalid, s)}
	var out bytes.Buffer
	text, asJSON := slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))
	for _, v := range all {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(raw)
		text.Info("said", "value", v)
		asJSON.Info("said", "value", v)
	}
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%q", planted)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret is printed as %s", form)
		}
	}
	if !strings.Contains(out.String(), s.String()) || s.String() == "" {
		t.Error("the mask is nowhere")
	}
	if s.Reveal() != planted || !s.Equal(rendezvous.NewSecret(planted)) || s.Equal(rendezvous.NewSecret("other")) {
		t.Error("a secret does not say what it is to those who ask")
	}
}

// PU-5: ids of 1..128 bytes without control characters; a caller has no operator's id in any letter case.
func TestPU5RegistrationIDs(t *testing.T) {
	for id, want := range map[string]rendezvous.Code{
		strings.Repeat("a", 128): "", strings.Repeat("a", 129): rendezvous.CodeInvalid, "": rendezvous.CodeInvalid, "a\x01": rendezvous.CodeInvalid,
		"\xff": rendezvous.CodeInvalid, "operatorx": "",
	} {
		if got := rendezvous.CodeOf(rendezvous.CheckRegistrationID("id", id)); got != want {
			t.Errorf("id %q: %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string]rendezvous.Code{
		"operator:x": rendezvous.CodeUnauthorized, "Operator:x": rendezvous.CodeUnauthorized, "OPERATOR:": rendezvous.CodeUnauthorized, "operatorx": "", "operator": "",
	} {
		if got := rendezvous.CodeOf(rendezvous.CheckCallerRegistration("id", id)); got != want {
			t.Errorf("a caller's %q: %q, want %q", id, got, want)
		}
	}
}

// PU-7, PU-98: what could not be sent is refused by the name of its field, without its value; what is not built likewise.
func TestPU7FaultsNameTheFieldNotTheValue(t *testing.T) {
	const planted = "Pl4nted"
	secret := func(s string) rendezvous.Secret { return rendezvous.NewSecret(s) }
	scheme := func(name, credentials string) func(*rendezvous.Registration) {
		return func(r *rendezvous.Registration) {
			r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: name, Credentials: secret(credentials)}
		}
	}
	headers := func(list ...string) func(*rendezvous.Registration) {
		return func(r *rendezvous.Registration) {
			for i := 0; i < len(list); i += 2 {
				r.Headers = append(r.Headers, rendezvous.PushHeader{Name: list[i], Value: secret(list[i+1])})
			}
		}
	}
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("X-%d", i), "v")
	}
	cases := map[string]struct {
		field string
		set   func(*rendezvous.Registration)
	}{
		"no run":                {"run_id", func(r *rendezvous.Registration) { r.RunID = "" }},
		"relative url":          {"url", func(r *rendezvous.Registration) { r.URL = "/" + planted }},
		"url without host":      {"url", func(r *rendezvous.Registration) { r.URL = "https:///" + planted }},
		"url of another scheme": {"url", func(r *rendezvous.Registration) { r.URL = "ftp://x/" + planted }},
		"long url":              {"url", func(r *rendezvous.Registration) { r.URL = "https://x/" + planted + strings.Repeat("a", 2048) }},
		"token with a line":     {"token", func(r *rendezvous.Registration) { r.Token = secret(planted + "\r\n") }},
		"token with a blank":    {"token", func(r *rendezvous.Registration) { r.Token = secret(planted + " ") }},
		"long token":            {"token", func(r *rendezvous.Registration) { r.Token = secret(planted + strings.Repeat("a", 512)) }},
		"scheme no token":       {"auth.scheme", scheme("Bea rer"+planted, "x")},
		"no credentials":        {"auth.credentials", scheme("Bearer", "")},
		"blank credentials":     {"auth.credentials", scheme("Bearer", "  ")},
		"credentials with CR":   {"auth.credentials", scheme("Bearer", planted+"\r")},
		"credentials with NUL":  {"auth.credentials", scheme("Bearer", planted+"\x00")},
		"credentials non-ASCII": {"auth.credentials", scheme("Bearer", planted+"é")},
		"long credentials":      {"auth.credentials", scheme("Bearer", planted+strings.Repeat("a", 4096))},
		"no password": {"auth.password", func(r *rendezvous.Registration) {
			r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthBasic, User: planted}
		}},
		"colon in user": {"auth.username", func(r *rendezvous.Registration) {
			r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthBasic, User: planted + ":", Password: secret("x")}
		}},
		"no client secret": {"auth.oauth2.client_secret", func(r *rendezvous.Registration) {
			r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthOAuth2, TokenURL: "https://x/t", ClientID: "c"}
		}},
		"two kinds of auth": {"auth", func(r *rendezvous.Registration) {
			scheme("Bearer", planted)(r)
			r.Auth.Password = secret(planted)
		}},
		"header no token":    {"headers", headers("X "+planted, "v")},
		"header edge blank":  {"headers", headers("X-A", planted+" ")},
		"header with LF":     {"headers", headers("X-A", planted+"\n")},
		"header without":     {"headers", headers("X-A", "")},
		"long header":        {"headers", headers("X-A", planted+strings.Repeat("a", 1024))},
		"equal but for case": {"headers", headers("X-A", planted, "x-a", planted)},
		"17 headers":         {"headers", headers(many...)},
		"certificate alone":  {"tls", func(r *rendezvous.Registration) { r.TLS.Certificates = planted }},
		"no authorities":     {"tls.ca", func(r *rendezvous.Registration) { r.TLS.Authorities = planted }},
		"unknown event":      {"events", func(r *rendezvous.Registration) { r.Events = []string{"run." + planted} }},
		"unknown beside all": {"events", func(r *rendezvous.Registration) { r.Events = []string{"*", planted} }},
		"unknown projection": {"projection", func(r *rendezvous.Registration) { r.Projection = planted }},
		"follow chain":       {"follow", func(r *rendezvous.Registration) { r.Follow = rendezvous.FollowChain }},
		"handshake":          {"handshake", func(r *rendezvous.Registration) { r.Handshake = rendezvous.HandshakeRequired }},
		"rate":               {"rate_per_minute", func(r *rendezvous.Registration) { r.RatePerMinute = 60 }},
		"timeout":            {"timeout", func(r *rendezvous.Registration) { r.Timeout = 31 * time.Second }},
		"max_attempts":       {"max_attempts", func(r *rendezvous.Registration) { r.MaxAttempts = 1001 }},
		"on_reject_limit":    {"on_reject_limit", func(r *rendezvous.Registration) { r.OnRejectLimit = -1 }},
		"an unusable key": {"signing", func(r *rendezvous.Registration) {
			r.Signing = []rendezvous.SigningKey{{Key: secret("whsec_" + planted)}}
		}},
		"an expired key": {"signing", func(r *rendezvous.Registration) {
			r.Signing = []rendezvous.SigningKey{{Key: goodKey, ExpiresAt: pushNow}}
		}},
		"a sixth key": {"signing", func(r *rendezvous.Registration) { r.Signing = make([]rendezvous.SigningKey, 6) }},
		"a key twice": {"signing", func(r *rendezvous.Registration) {
			r.Signing = []rendezvous.SigningKey{{Key: goodKey}, {Key: goodKey}}
		}},
		"a run's id too long": {"id", func(r *rendezvous.Registration) { r.RunID = strings.Repeat("r", 124) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := registration()
			c.set(&r)
			_, err := r.Check(pushNow)
			e := rendezvous.AsError(err)
			if err == nil || e.Code != rendezvous.CodeInvalid || e.Details["field"] != c.field {
				t.Fatalf("%v (%v), want invalid of %s", err, e.Details, c.field)
			}
			if want := map[string]string{"an expired key": "expired", "a key twice": "twice", "an unusable key": "base64"}[name]; !strings.Contains(e.Message, want) {
				t.Errorf("%v, for another reason than %q", err, want)
			}
			if strings.Contains(fmt.Sprint(err, e.Details), planted) {
				t.Errorf("%v repeats the value", err)
			}
		})
	}
}

// PU-7: every reserved header is refused in any letter case.
func TestPU7ReservedHeaders(t *testing.T) {
	for _, name := range []string{
		"Host", "Content-Type", "Content-Anything", "Transfer-Encoding", "TE", "Trailer", "Connection", "Keep-Alive", "Upgrade", "Expect", "Accept-Encoding", "User-Agent",
		"Authorization", "Cookie", "Set-Cookie", "Date", "Via", "Forwarded", "X-Forwarded-For", "Proxy-Authorization", "Origin", "Referer", "Sec-Fetch-Mode",
		"webhook-id", "svix-id", "rendezvous-attempt", "ce-id", "traceparent", "tracestate", "baggage", "A2A-Version", "X-A2A-Notification-Token", "Idempotency-Key",
		"X-Idempotency-Key",
	} {
		for _, n := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			r := registration()
			r.Headers = []rendezvous.PushHeader{{Name: n, Value: rendezvous.NewSecret("v")}}
			if _, err := r.Check(pushNow); rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
				t.Errorf("%s: %v", n, err)
			}
		}
	}
	if rendezvous.ReservedHeader("X-Content") || rendezvous.ReservedHeader("Hosts") {
		t.Error("a free name is reserved")
	}
}

func TestRegistrationDefaults(t *testing.T) {
	r, err := registration().Check(pushNow)
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != "push-r-1" || r.Timeout != 15*time.Second || r.MaxAttempts != 64 || r.OnRejectLimit != 8 || r.Projection != rendezvous.ProjectionCloudEvents ||
		*r.IncludePayload || *r.Trace || r.Follow != "run" || r.Handshake != "none" {
		t.Errorf("defaults: %+v", r)
	}
	for _, e := range r.Events {
		if !strings.HasPrefix(e, "run.") && !strings.HasPrefix(e, "wait.") {
			t.Errorf("a caller takes %s by default", e)
		}
	}
	if len(r.Events) != 13 {
		t.Errorf("a caller takes %d kinds by default: %v", len(r.Events), r.Events)
	}
	if again, err := r.Check(pushNow); err != nil || len(again.Events) != 13 {
		t.Errorf("a checked registration is checked again: %v", err)
	}
	operator, err := rendezvous.CheckPushEvents("events", nil, rendezvous.PushOperator)
	if want := []string{"run.cancelled", "run.completed", "run.failed", "run.timed_out"}; err != nil || strings.Join(operator, " ") != strings.Join(want, " ") {
		t.Errorf("an operator takes %v by default", operator)
	}
	big := registration()
	big.TLS.Authorities = strings.Repeat("x", rendezvous.MaxRegistration)
	if _, err := big.Check(pushNow); rendezvous.CodeOf(err) == "" {
		t.Error("a registration over 64 KiB passes")
	}
}

// PU-6: a destination with a blank or duplicate name is refused, by its name or place.
func TestPU6Destinations(t *testing.T) {
	for name, list := range map[string][]rendezvous.Destination{
		"blank": {{Name: " "}}, "twice": {{Name: "a"}, {Name: "a"}}, "events": {{Name: "a", Events: []string{"nope"}}},
		"long": {{Name: strings.Repeat("a", 128)}}, "types": {{Name: "a", Types: []string{""}}},
	} {
		if _, err := rendezvous.CheckDestinations(list); rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := rendezvous.CheckDestinations([]rendezvous.Destination{{Name: "a"}, {Name: "b", Events: []string{"*"}}})
	if err != nil || len(got[0].Events) != 4 || len(got[1].Events) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// PU-80: a trace context that no header can carry is not kept: a registration would park over it.
func TestPU80TracesThatNoHeaderCarriesAreDropped(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct{ given, kept rendezvous.Trace }{
		{rendezvous.Trace{Parent: parent, State: "v=1"}, rendezvous.Trace{Parent: parent, State: "v=1"}},
		{rendezvous.Trace{Parent: parent, State: "v=é"}, rendezvous.Trace{Parent: parent}},
		{rendezvous.Trace{Parent: parent, State: "v=1\x7f"}, rendezvous.Trace{Parent: parent}},
		{rendezvous.Trace{Parent: parent + "é", State: "v=1"}, rendezvous.Trace{}},
	} {
		if got := c.given.Kept(); got != c.kept {
			t.Errorf("%+v is kept as %+v, want %+v", c.given, got, c.kept)
		}
	}
}
