package receiver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

// The vectors of push.md section 14.
const (
	keyV1   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	keyV5   = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	idV1    = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	bodyV1  = `{"test": 2432232314}`
	entryV1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	entryV4 = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
	entryV7 = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

var instantV1 = time.Unix(1614265330, 0).UTC()

func headersV1(signature string) http.Header {
	return http.Header{"Webhook-Id": {idV1}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {signature}}
}

func verifier(t *testing.T, now time.Time, keys ...string) *receiver.Verifier {
	t.Helper()
	v, err := receiver.New(keys, receiver.Clock(clock.NewManual(now)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPU76VerifiesTheVectors(t *testing.T) {
	for name, c := range map[string]struct {
		key, id, timestamp, body, signature string
		want                                error
	}{
		"V1":                         {keyV1, idV1, "1614265330", bodyV1, entryV1, nil},
		"V2":                         {"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", "1649367553", `{"email":"test@example.com","username":"test_user"}`, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=", nil},
		"V3":                         {"whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", "1731705121", `{"event_type":"ping","data":{"success":true}}`, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=", nil},
		"V4 by V5":                   {keyV5, idV1, "1614265330", bodyV1, entryV4, nil},
		"V6":                         {keyV1, idV1, "1614265330", "", "v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A=", nil},
		"V7":                         {keyV1, idV1, "1614265330", bodyV1, entryV7, receiver.ErrNoMatch},
		"V7, a v2 entry, then V1's":  {keyV1, idV1, "1614265330", bodyV1, entryV7 + " v2,AAAA " + entryV1, nil},
		"V1's, then others":          {keyV1, idV1, "1614265330", bodyV1, entryV1 + " nothing " + entryV7 + " v1,%%%", nil},
		"V1 with the prefix cut off": {strings.TrimPrefix(keyV1, "whsec_"), idV1, "1614265330", bodyV1, entryV1, nil},
	} {
		seconds, err := strconv.ParseInt(c.timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		headers := http.Header{"Webhook-Id": {c.id}, "Webhook-Timestamp": {c.timestamp}, "Webhook-Signature": {c.signature}}
		got, err := verifier(t, time.Unix(seconds, 0), c.key).Verify(headers, []byte(c.body))
		if !errors.Is(err, c.want) || err == nil && (got.ID != c.id || got.Timestamp.Unix() != seconds || got.Key != 0 || string(got.Body) != c.body) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestPU99AnyEditIsNoMatch(t *testing.T) {
	v := verifier(t, instantV1, keyV1, keyV5)
	flipped := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	for name, edit := range map[string]func(h http.Header, body *string){
		"body":            func(_ http.Header, body *string) { *body += " " },
		"id":              func(h http.Header, _ *string) { h.Set("webhook-id", idV1+"x") },
		"timestamp":       func(h http.Header, _ *string) { h.Set("webhook-timestamp", "1614265331") },
		"timestamp, form": func(h http.Header, _ *string) { h.Set("webhook-timestamp", "01614265330") },
		"signature":       func(h http.Header, _ *string) { h.Set("webhook-signature", "v1,"+flipped) },
		"its scheme":      func(h http.Header, _ *string) { h.Set("webhook-signature", "v1a"+strings.TrimPrefix(entryV1, "v1")) },
	} {
		headers, body := headersV1(entryV1), bodyV1
		edit(headers, &body)
		if _, err := v.Verify(headers, []byte(body)); !errors.Is(err, receiver.ErrNoMatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPU99FreshnessBothWaysBoundInclusive(t *testing.T) {
	key, err := standardwebhooks.ParseSigningKey(keyV1)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	m := standardwebhooks.NewMessage("a/1/0", at, nil)
	headers := http.Header{"Webhook-Id": {m.ID}, "Webhook-Timestamp": {m.Timestamp}, "Webhook-Signature": {key.Sign(m)}}
	for skew, want := range map[time.Duration]error{
		0: nil, 300 * time.Second: nil, -300 * time.Second: nil,
		300*time.Second + 1: receiver.ErrTooOld, -300*time.Second - 1: receiver.ErrTooNew,
		301 * time.Second: receiver.ErrTooOld, -301 * time.Second: receiver.ErrTooNew,
	} {
		if _, err := verifier(t, at.Add(skew), keyV1).Verify(headers, nil); !errors.Is(err, want) {
			t.Errorf("received %v after it was sent: %v, want %v", skew, err, want)
		}
	}
	wide, err := receiver.New([]string{keyV1}, receiver.Tolerance(time.Hour), receiver.Clock(clock.NewManual(at.Add(time.Hour))))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wide.Verify(headers, nil); err != nil || !got.Timestamp.Equal(at) {
		t.Errorf("in a window of an hour: %+v, %v", got, err)
	}
}

func TestPU99WhatMakesNoVerifier(t *testing.T) {
	for name, c := range map[string]struct {
		keys    []string
		options []receiver.Option
	}{
		"no key": {}, "eleven keys": {keys: strings.Split(strings.Repeat(keyV1+" ", 10)+keyV1, " ")},
		"empty key": {keys: []string{""}}, "bare prefix": {keys: []string{"whsec_"}}, "bad second key": {keys: []string{keyV1, "whpk_AAAA"}},
		"tolerance 0":        {keys: []string{keyV1}, options: []receiver.Option{receiver.Tolerance(0)}},
		"negative tolerance": {keys: []string{keyV1}, options: []receiver.Option{receiver.Tolerance(-time.Second)}},
		"tolerance of 25 h":  {keys: []string{keyV1}, options: []receiver.Option{receiver.Tolerance(25 * time.Hour)}},
	} {
		if _, err := receiver.New(c.keys, c.options...); err == nil {
			t.Errorf("%s: a verifier", name)
		} else if strings.Contains(err.Error(), keyV1[8:]) {
			t.Errorf("%s: the error shows a key: %v", name, err)
		}
	}
	if _, err := receiver.New(strings.Split(strings.Repeat(keyV1+" ", 9)+keyV1, " "), receiver.Tolerance(24*time.Hour)); err != nil {
		t.Errorf("ten keys and 24 h: %v", err)
	}
}

func TestPU100EachMissingOrRepeatedHeaderIsNamed(t *testing.T) {
	v := verifier(t, instantV1, keyV1)
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		canonical := http.CanonicalHeaderKey(name)
		for how, edit := range map[string]struct {
			do    func(h http.Header)
			times int
		}{
			"missing":               {func(h http.Header) { h.Del(name) }, 0},
			"empty":                 {func(h http.Header) { h.Set(name, "") }, 0},
			"twice":                 {func(h http.Header) { h.Add(name, h.Get(name)) }, 2},
			"twice, in other cases": {func(h http.Header) { h[strings.ToUpper(name)] = h[canonical] }, 2},
		} {
			headers := headersV1(entryV1)
			edit.do(headers)
			_, err := v.Verify(headers, []byte(bodyV1))
			var fault *receiver.HeaderError
			if !errors.As(err, &fault) || !errors.Is(err, receiver.ErrHeader) || fault.Header != name || fault.Times != edit.times || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: %v", name, how, err)
			}
		}
	}
	if _, err := v.Verify(nil, nil); err == nil || err.Error() != "webhook-id is missing" {
		t.Errorf("no headers: %v", err)
	}
}

func TestPU100HeaderNamesInAnyCase(t *testing.T) {
	v := verifier(t, instantV1, keyV1)
	for _, change := range []func(string) string{strings.ToLower, strings.ToUpper, http.CanonicalHeaderKey} {
		headers := map[string][]string{}
		for name, values := range headersV1(entryV1) {
			headers[change(name)] = values
		}
		if _, err := v.Verify(headers, []byte(bodyV1)); err != nil {
			t.Errorf("%v: %v", headers, err)
		}
	}
}

func TestPU100FaultsAreTold(t *testing.T) {
	v := verifier(t, instantV1, keyV1)
	for signature, want := range map[string]error{
		"v2,AAAA": receiver.ErrUnknownScheme, "nothing": receiver.ErrUnknownScheme, "v2,AAAA v1": receiver.ErrUnknownScheme, "V1,AAAA": receiver.ErrUnknownScheme,
		"v1,AAAA": receiver.ErrNoMatch, "v1,": receiver.ErrNoMatch, "v1,%%%": receiver.ErrNoMatch, entryV4: receiver.ErrNoMatch,
	} {
		if _, err := v.Verify(headersV1(signature), []byte(bodyV1)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", signature, err, want)
		}
	}
	for timestamp, want := range map[string]error{
		"now": receiver.ErrTimestamp, "1614265330.5": receiver.ErrTimestamp, "-1614265330": receiver.ErrTimestamp, "+1614265330": receiver.ErrTimestamp,
		" 1614265330": receiver.ErrTimestamp, "0x60367872": receiver.ErrTimestamp, "16142_65330": receiver.ErrTimestamp, "9223372036854775808": receiver.ErrTimestamp,
		"0": receiver.ErrTooOld, "9223372036854775807": receiver.ErrTooNew,
	} {
		headers := headersV1(entryV1)
		headers["Webhook-Timestamp"] = []string{timestamp}
		if _, err := v.Verify(headers, []byte(bodyV1)); !errors.Is(err, want) {
			t.Errorf("timestamp %q: %v, want %v", timestamp, err, want)
		}
	}
}

// PU-100: a signature that differs in its first or its last byte, is cut or is longer, is one and the same fault, and where the right entry or key stands does not matter.
func TestPU100PositionAndLengthMakeNoDifference(t *testing.T) {
	right, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(entryV1, "v1,"))
	if err != nil {
		t.Fatal(err)
	}
	edited := func(edit func(b []byte) []byte) string {
		return "v1," + base64.StdEncoding.EncodeToString(edit(bytes.Clone(right)))
	}
	wrong := []string{
		edited(func(b []byte) []byte { b[0] ^= 1; return b }), edited(func(b []byte) []byte { b[31] ^= 1; return b }),
		edited(func(b []byte) []byte { return b[:31] }), edited(func(b []byte) []byte { return append(b, 0) }), edited(func(b []byte) []byte { return b[:0] }),
	}
	v := verifier(t, instantV1, "whsec_AA==", keyV1, keyV5)
	for _, signature := range wrong {
		if _, err := v.Verify(headersV1(signature), []byte(bodyV1)); !errors.Is(err, receiver.ErrNoMatch) {
			t.Errorf("%s: %v", signature, err)
		}
	}
	for i := range len(wrong) + 1 {
		entries := append(append(append([]string{}, wrong[:i]...), entryV1), wrong[i:]...)
		if got, err := v.Verify(headersV1(strings.Join(entries, " ")), []byte(bodyV1)); err != nil || got.Key != 1 {
			t.Errorf("right entry at %d: key %d, %v", i, got.Key, err)
		}
	}
	if got, err := v.Verify(headersV1(entryV4+" "+entryV1), []byte(bodyV1)); err != nil || got.Key != 1 {
		t.Errorf("two keys match: %+v, %v", got, err)
	}
}

func TestAStrangersHeaderOfManyEntriesCostsLittle(t *testing.T) {
	v := verifier(t, instantV1, keyV5)
	if _, err := v.Verify(headersV1(strings.Repeat(entryV7+" ", 63)+entryV4), []byte(bodyV1)); err != nil {
		t.Errorf("the 64th entry: %v", err)
	}
	if _, err := v.Verify(headersV1(strings.Repeat(entryV7+" ", 64)+entryV4), []byte(bodyV1)); !errors.Is(err, receiver.ErrNoMatch) {
		t.Errorf("the 65th entry: %v", err)
	}
}

// seen remembers in memory.
type seen struct {
	mu   sync.Mutex
	ids  map[string]bool
	fail error
}

func (s *seen) Seen(_ context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id], s.fail
}

func (s *seen) Remember(ctx context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.ids[id] = true
	}
}

// post sends V1's message, or another body with its headers, through a handler.
func post(h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/hooks", body)
	for name, values := range headersV1(entryV1) {
		r.Header[name] = values
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	return w
}

func TestPU101OverTheBodyLimitIs413(t *testing.T) {
	v := verifier(t, instantV1, keyV1)
	called := 0
	h := v.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	if got := post(h, bytes.NewReader(make([]byte, 2<<20+1))); got.Code != http.StatusRequestEntityTooLarge || called > 0 {
		t.Errorf("2 MiB and a byte: %d, %d calls", got.Code, called)
	}
	if got := post(h, bytes.NewReader(make([]byte, 2<<20))); got.Code != http.StatusUnauthorized || called > 0 {
		t.Errorf("2 MiB that do not verify: %d, %d calls", got.Code, called)
	}
	small := v.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }), receiver.MaxBody(int64(len(bodyV1))))
	if got := post(small, strings.NewReader(bodyV1)); got.Code != http.StatusOK || called != 1 {
		t.Errorf("as many bytes as may be: %d, %d calls", got.Code, called)
	}
	if got := post(h, io.MultiReader(strings.NewReader("{"), brokenReader{})); got.Code != http.StatusBadRequest || called != 1 {
		t.Errorf("a body that breaks off: %d, %d calls", got.Code, called)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestPU101TheHandlerGetsTheRawBytes(t *testing.T) {
	h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m, ok := receiver.FromContext(r.Context())
		if err != nil || !ok || string(body) != bodyV1 || string(m.Body) != bodyV1 || m.ID != idV1 {
			t.Errorf("%q, %v, %+v", body, err, m)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	if got := post(h, strings.NewReader(bodyV1)); got.Code != http.StatusAccepted {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if _, ok := receiver.FromContext(context.Background()); ok {
		t.Error("a message out of nothing")
	}
}

func TestPU101ASeenIDIs200WithoutTheHandler(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"nothing written": func(http.ResponseWriter) {},
		"a body":          func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok") },
		"204":             func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"103, then 200":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(http.StatusOK) },
	} {
		known, called := &seen{ids: map[string]bool{}}, 0
		h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { called++; answer(w) }), receiver.Dedupe(known))
		post(h, strings.NewReader(bodyV1))
		if got := post(h, strings.NewReader(bodyV1)); got.Code != http.StatusOK || called != 1 {
			t.Errorf("%s: the repeat was answered %d after %d calls", name, got.Code, called)
		}
	}
}

func TestPU101AFailingHandlerIsNotRemembered(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"500": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"409": func(w http.ResponseWriter) { http.Error(w, "not now", http.StatusConflict) },
		"302": func(w http.ResponseWriter) { w.WriteHeader(http.StatusFound) },
		"500, then 200": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			w.WriteHeader(http.StatusOK)
		},
		"panic": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		known, called := &seen{ids: map[string]bool{}}, 0
		h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { called++; answer(w) }), receiver.Dedupe(known))
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				post(h, strings.NewReader(bodyV1))
			}()
		}
		if called != 2 || len(known.ids) > 0 {
			t.Errorf("%s: %d calls, remembered %v", name, called, known.ids)
		}
	}
}

func TestPU101WhereMemoryFailsTheSenderComesAgain(t *testing.T) {
	called := 0
	h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }), receiver.Dedupe(&seen{fail: errors.New("down")}))
	if got := post(h, strings.NewReader(bodyV1)); got.Code != http.StatusServiceUnavailable || called > 0 {
		t.Errorf("%d, %d calls", got.Code, called)
	}
}

func TestAMessageThatDoesNotVerifyNeverMeetsTheHandlerOrMemory(t *testing.T) {
	known := &seen{ids: map[string]bool{idV1: true}}
	h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }), receiver.Dedupe(known))
	if got := post(h, strings.NewReader(bodyV1+" ")); got.Code != http.StatusUnauthorized {
		t.Errorf("%d", got.Code)
	}
}

func TestTheResponseCanBeControlled(t *testing.T) {
	h := verifier(t, instantV1, keyV1).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}), receiver.Dedupe(&seen{ids: map[string]bool{}}))
	if got := post(h, strings.NewReader(bodyV1)); !got.Flushed {
		t.Error("not flushed")
	}
}
