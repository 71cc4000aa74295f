package request_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/project"
	"github.com/rendezvous-events/rendezvous/push/request"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretV1  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretV2  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	privateV4 = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publicV5  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
)

var at = time.Date(2026, 11, 29, 16, 0, 0, 999_999_000, time.UTC)

func key(text string, expires time.Time) rendezvous.SigningKey {
	return rendezvous.SigningKey{Key: rendezvous.NewSecret(text), ExpiresAt: expires}
}

func input() request.Input {
	return request.Input{
		Message:      project.Message{ID: "run-1/7/0", ContentType: "application/cloudevents+json; charset=UTF-8", Body: []byte(`{"id":"run-1/7/0"}`)},
		Registration: rendezvous.Registration{Projection: rendezvous.ProjectionCloudEvents},
		At:           at, Version: "1.2.3",
	}
}

// lines is a list of headers as they go out, and what is wrong with it.
func lines(t *testing.T, in request.Input) []string {
	t.Helper()
	list, fault := request.Headers(in)
	if fault != nil {
		t.Fatal(fault)
	}
	var out []string
	for _, h := range list {
		out = append(out, h.Name+": "+h.Value)
	}
	return out
}

func TestPU73ExactlyTheHeadersOfTheContract(t *testing.T) {
	unsigned := []string{
		"Content-Type: application/cloudevents+json; charset=UTF-8", "Accept-Encoding: identity", "User-Agent: Rendezvous/1.2.3", "webhook-id: run-1/7/0", "webhook-timestamp: 1795968000",
		"rendezvous-attempt: 1",
	}
	if diff := cmp.Diff(unsigned, lines(t, input())); diff != "" {
		t.Error(diff)
	}
	in := input()
	in.Attempts, in.Message.ContentType, in.Registration.Projection = 4, "application/a2a+json", rendezvous.ProjectionA2A
	in.Registration.Token = rendezvous.NewSecret("t0ken")
	in.Registration.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "ApiKey", Credentials: rendezvous.NewSecret("k")}
	in.Registration.Headers = []rendezvous.PushHeader{{Name: "X-lower-UPPER", Value: rendezvous.NewSecret("a b")}, {Name: "b", Value: rendezvous.NewSecret("2")}}
	in.Registration.Signing = []rendezvous.SigningKey{key(secretV1, time.Time{})}
	in.Trace = rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	h := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(strings.TrimPrefix(secretV1, "whsec_"))))
	h.Write([]byte(`run-1/7/0.1795968000.{"id":"run-1/7/0"}`))
	full := []string{
		"Content-Type: application/a2a+json", "Accept-Encoding: identity", "User-Agent: Rendezvous/1.2.3", "webhook-id: run-1/7/0", "webhook-timestamp: 1795968000",
		"webhook-signature: v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)), "rendezvous-attempt: 5", "Authorization: ApiKey k", "X-A2A-Notification-Token: t0ken", "A2A-Notification-Token: t0ken",
		"A2A-Version: 1.0", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate: a=b", "X-lower-UPPER: a b", "b: 2",
	}
	if diff := cmp.Diff(full, lines(t, in)); diff != "" {
		t.Error(diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wire is a client that reaches this machine as operators do, and what a raw receiver saw of one request.
func wire(t *testing.T, in request.Input) (head, body string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	seen := make(chan [2]string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
		}
		body := make([]byte, len(in.Message.Body))
		_, _ = io.ReadFull(r, body)
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		seen <- [2]string{head.String(), string(body)}
	}()
	send(t, in, "http://"+listener.Addr().String()+"/hook?x=%2F")
	got := <-seen
	return got[0], got[1]
}

func send(t *testing.T, in request.Input, url string) transport.Attempt {
	t.Helper()
	policy, err := target.New(target.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	client := transport.New(transport.Settings{Policy: policy, Clock: clock.System})
	defer client.Close()
	headers, fault := request.Headers(in)
	if fault != nil {
		t.Fatal(fault)
	}
	a := client.Do(t.Context(), transport.Request{Namespace: rendezvous.PushOperator, URL: url, Headers: headers, Body: in.Message.Body, Timeout: 10 * time.Second})
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a
}

// PU-73: on the wire, nothing is added but Host and Content-Length.
func TestPU73TheWireShowsExactlyThese(t *testing.T) {
	head, body := wire(t, input())
	var names []string
	for _, line := range strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")[1:] {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	want := []string{"Host", "Content-Type", "Accept-Encoding", "User-Agent", "webhook-id", "webhook-timestamp", "rendezvous-attempt", "Content-Length"}
	if diff := cmp.Diff(want, names); diff != "" || !strings.HasPrefix(head, "POST /hook?x=%2F HTTP/1.1\r\n") || body != `{"id":"run-1/7/0"}` {
		t.Errorf("%s\n%q %q", diff, head, body)
	}
}

// PU-74: a receiver with a library of its own, here the standard's server and the receiver kit, verifies what came over the wire; ids and instants agree.
func TestPU74AReceiverVerifiesWhatCameOverTheWire(t *testing.T) {
	record := rendezvous.Record{Seq: 3, RunID: "order.47/11", Kind: rendezvous.RunCompleted, RecordedAt: at}
	messages, err := project.Messages(record, project.Options{
		Tenant: "acme", Workflow: "w", Projection: rendezvous.ProjectionCloudEvents, Events: []string{"*"}, Source: "urn:test",
	})
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	verifier, err := receiver.New([]string{publicV5}, receiver.Clock(clock.NewManual(at)))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan receiver.Message, 1)
	server := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m, _ := receiver.FromContext(r.Context())
		got <- m
	})))
	defer server.Close()
	in := input()
	in.Message = messages[0]
	in.Registration.Signing = []rendezvous.SigningKey{key(secretV1, time.Time{}), key(privateV4, time.Time{})}
	if a := send(t, in, server.URL); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	m := <-got
	var event struct{ ID string }
	if err := json.Unmarshal(m.Body, &event); err != nil || event.ID != m.ID || m.ID != "order%2E47%2F11/3/0" || !m.Timestamp.Equal(at.Truncate(time.Second)) {
		t.Errorf("%+v, event %q, %v", m, event.ID, err)
	}
}

func TestPU74UnsignedHasNoSignature(t *testing.T) {
	shown := strings.Join(lines(t, input()), "\n")
	if strings.Contains(shown, "signature") || !strings.Contains(shown, "webhook-id: ") || !strings.Contains(shown, "webhook-timestamp: ") {
		t.Error(shown)
	}
}

func TestPU75OneEntryPerUnexpiredKeyNewestFirst(t *testing.T) {
	in := input()
	in.Registration.Signing = []rendezvous.SigningKey{
		key(privateV4, time.Time{}), key(secretV1, at.Add(time.Microsecond)), key(secretV2, at), key(secretV2, at.Add(-time.Hour)),
	}
	var signature string
	for _, line := range lines(t, in) {
		if value, ok := strings.CutPrefix(line, "webhook-signature: "); ok {
			signature = value
		}
	}
	entries := strings.Split(signature, " ")
	if len(entries) != 2 || !strings.HasPrefix(entries[0], "v1a,") || !strings.HasPrefix(entries[1], "v1,") {
		t.Errorf("%q", signature)
	}
	headers := map[string][]string{"webhook-id": {"run-1/7/0"}, "webhook-timestamp": {"1795968000"}, "webhook-signature": {signature}}
	for text, good := range map[string]bool{secretV1: true, publicV5: true, secretV2: false} {
		verifier, err := receiver.New([]string{text}, receiver.Clock(clock.NewManual(at)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verifier.Verify(headers, in.Message.Body); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// PU-44: a retry has a new timestamp, signature and count, and the same id and body.
func TestPU44ARetryIsTheSameMessage(t *testing.T) {
	in := input()
	in.Registration.Signing = []rendezvous.SigningKey{key(secretV1, time.Time{})}
	first := lines(t, in)
	in.At, in.Attempts = at.Add(time.Second), 1
	second := lines(t, in)
	var differ []string
	for i := range first {
		if first[i] != second[i] {
			name, _, _ := strings.Cut(first[i], ":")
			differ = append(differ, name)
		}
	}
	if diff := cmp.Diff([]string{"webhook-timestamp", "webhook-signature", "rendezvous-attempt"}, differ); diff != "" {
		t.Error(diff)
	}
}

func TestPU78Authorization(t *testing.T) {
	for want, c := range map[string]struct {
		auth   rendezvous.PushAuth
		bearer string
	}{
		"":                             {},
		"Authorization: Bearer abc":    {auth: rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer", Credentials: rendezvous.NewSecret("abc")}},
		"Authorization: Basic dTpwOnc": {auth: rendezvous.PushAuth{Kind: rendezvous.AuthBasic, User: "u", Password: rendezvous.NewSecret("p:w")}},
		"Authorization: Bearer xyz":    {auth: rendezvous.PushAuth{Kind: rendezvous.AuthOAuth2}, bearer: "xyz"},
	} {
		in := input()
		in.Registration.Auth, in.Bearer = c.auth, rendezvous.NewSecret(c.bearer)
		var got string
		for _, line := range lines(t, in) {
			if strings.HasPrefix(line, "Authorization: ") {
				got = line
			}
		}
		if strings.TrimRight(got, "=") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPU78TheTokenIsInBothHeadersInEitherProjection(t *testing.T) {
	for _, projection := range []rendezvous.Projection{rendezvous.ProjectionA2A, rendezvous.ProjectionCloudEvents} {
		in := input()
		in.Registration.Projection, in.Registration.Token = projection, rendezvous.NewSecret("t0ken")
		shown := strings.Join(lines(t, in), "\n")
		if !strings.Contains(shown, "\nX-A2A-Notification-Token: t0ken\nA2A-Notification-Token: t0ken") || strings.Contains(shown, "A2A-Version: 1.0") != (projection == rendezvous.ProjectionA2A) {
			t.Errorf("%s: %s", projection, shown)
		}
	}
}

func TestPU80NoTraceWithoutAContextAndNeverBaggage(t *testing.T) {
	in := input()
	in.Trace = rendezvous.Trace{State: "a=b"}
	for _, line := range lines(t, in) {
		if strings.HasPrefix(line, "trace") || strings.HasPrefix(strings.ToLower(line), "baggage") {
			t.Error(line)
		}
	}
}

// What cannot be sent parks, by its reason, and is never sent without what was asked for.
func TestPU78NothingIsSentWithoutWhatWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(r *rendezvous.Registration)
		reason rendezvous.ParkReason
	}{
		"a bad key": {func(r *rendezvous.Registration) {
			r.Signing = []rendezvous.SigningKey{key(secretV1, time.Time{}), key("whsec_s3cr3t", time.Time{})}
		}, rendezvous.ParkBadKey},
		"no key text": {func(r *rendezvous.Registration) { r.Signing = []rendezvous.SigningKey{{}} }, rendezvous.ParkBadKey},
		"a reserved name": {func(r *rendezvous.Registration) {
			r.Headers = []rendezvous.PushHeader{{Name: "Webhook-ID", Value: rendezvous.NewSecret("s3cr3t")}}
		}, rendezvous.ParkBadHeader},
		"idempotency": {func(r *rendezvous.Registration) {
			r.Headers = []rendezvous.PushHeader{{Name: "Idempotency-Key", Value: rendezvous.NewSecret("s3cr3t")}}
		}, rendezvous.ParkBadHeader},
		"no credentials": {func(r *rendezvous.Registration) {
			r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer"}
		}, rendezvous.ParkBadHeader},
		"no password":  {func(r *rendezvous.Registration) { r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthBasic, User: "u"} }, rendezvous.ParkBadHeader},
		"no bearer":    {func(r *rendezvous.Registration) { r.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthOAuth2} }, rendezvous.ParkBadHeader},
		"another kind": {func(r *rendezvous.Registration) { r.Auth = rendezvous.PushAuth{Kind: "digest"} }, rendezvous.ParkBadHeader},
	} {
		in := input()
		c.spoil(&in.Registration)
		list, fault := request.Headers(in)
		if fault == nil || list != nil || fault.Class != rendezvous.ClassConfig || fault.Park != c.reason {
			t.Errorf("%s: %v, %+v", name, list, fault)
			continue
		}
		if shown := fmt.Sprintf("%v %+v", fault, fault); strings.Contains(shown, "s3cr3t") {
			t.Errorf("%s shows a secret: %s", name, shown)
		}
	}
	// An expired key that cannot be read is nobody's fault any more.
	in := input()
	in.Registration.Signing = []rendezvous.SigningKey{key(secretV1, time.Time{}), key("whsec_s3cr3t", at)}
	if _, fault := request.Headers(in); fault != nil {
		t.Error(fault)
	}
}
