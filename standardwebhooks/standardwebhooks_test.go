package standardwebhooks_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

const (
	secretV1  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	privateV4 = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publicV5  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	entryV1   = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	entryV4   = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

var messageV1 = standardwebhooks.Message{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Timestamp: "1614265330", Body: []byte(`{"test": 2432232314}`)}

func parse(t *testing.T, text string) standardwebhooks.SigningKey {
	t.Helper()
	key, err := standardwebhooks.ParseSigningKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The vectors of push.md section 14 that a sender makes: V1, V2, V4 and V6.
func TestPU76SignsTheVectors(t *testing.T) {
	empty := messageV1
	empty.Body = nil
	for name, c := range map[string]struct {
		key     string
		message standardwebhooks.Message
		want    string
	}{
		"V1": {secretV1, messageV1, entryV1},
		"V2": {
			"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
			standardwebhooks.Message{ID: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", Timestamp: "1649367553", Body: []byte(`{"email":"test@example.com","username":"test_user"}`)},
			"v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
		},
		"V4": {privateV4, messageV1, entryV4},
		"V6": {secretV1, empty, "v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A="},
	} {
		key := parse(t, c.key)
		if got := key.Sign(c.message); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if key.Reveal() != c.key {
			t.Errorf("%s: the key's text is not the one that was given", name)
		}
	}
}

// V1 to V6 as a receiver judges them, and V7, which is another key's signature.
func TestPU76VerifiesTheVectors(t *testing.T) {
	empty := messageV1
	empty.Body = nil
	short := standardwebhooks.Message{ID: "msg_loFOjxBNrRLzqYUf", Timestamp: "1731705121", Body: []byte(`{"event_type":"ping","data":{"success":true}}`)}
	for name, c := range map[string]struct {
		key     string
		message standardwebhooks.Message
		entry   string
		want    bool
	}{
		"V1":                    {secretV1, messageV1, entryV1, true},
		"V1 without the prefix": {strings.TrimPrefix(secretV1, "whsec_"), messageV1, entryV1, true},
		"V3":                    {"whsec_plJ3nmyCDGBKInavdOK15jsl", short, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=", true},
		"V5":                    {publicV5, messageV1, entryV4, true},
		"V6":                    {secretV1, empty, "v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A=", true},
		"V7":                    {secretV1, messageV1, "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=", false},
		"V5 on another body":    {publicV5, empty, entryV4, false},
		"V5 on V1's entry":      {publicV5, messageV1, entryV1, false},
	} {
		key, err := standardwebhooks.ParseVerifyingKey(c.key)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := key.Verify(c.message, signature(t, c.entry)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (standardwebhooks.VerifyingKey{}).Verify(messageV1, nil) {
		t.Error("no key verifies")
	}
}

func signature(t *testing.T, entry string) []byte {
	t.Helper()
	_, text, _ := strings.Cut(entry, ",")
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// PU-74: a second implementation, here one written out in the test, verifies the signature.
func TestPU74AnotherImplementationVerifies(t *testing.T) {
	raw := bytes.Repeat([]byte{7}, 24)
	key, err := standardwebhooks.NewHMACKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 29, 16, 0, 0, 999_999_999, time.UTC)
	body := []byte(`{"n":1}`)
	h := hmac.New(sha256.New, raw)
	fmt.Fprintf(h, "%s.%d.%s", "run/1/0", at.Unix(), body)
	m := standardwebhooks.NewMessage("run/1/0", at, body)
	if got, want := key.Sign(m), "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if m.Timestamp != "1795968000" {
		t.Errorf("timestamp %s is not the whole second of the attempt", m.Timestamp)
	}
}

func TestPU76EveryPartChangesTheSignature(t *testing.T) {
	for _, text := range []string{secretV1, privateV4} {
		key := parse(t, text)
		other, err := standardwebhooks.Generate(key.Algorithm(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		m := messageV1
		seen := map[string]bool{key.Sign(m): true, other.Sign(m): true}
		for _, change := range []func(*standardwebhooks.Message){
			func(m *standardwebhooks.Message) { m.ID += "x" },
			func(m *standardwebhooks.Message) { m.Timestamp = "1614265331" },
			func(m *standardwebhooks.Message) { m.Body = append([]byte(nil), append(m.Body, ' ')...) },
		} {
			changed := m
			change(&changed)
			seen[key.Sign(changed)] = true
		}
		if len(seen) != 5 {
			t.Errorf("%s: %d signatures of 5 different inputs", key.Algorithm(), len(seen))
		}
	}
}

func TestPU75OneEntryPerKeyInTheOrderGiven(t *testing.T) {
	newest, older := parse(t, privateV4), parse(t, secretV1)
	if got, want := standardwebhooks.Sign([]standardwebhooks.SigningKey{newest, older}, messageV1), entryV4+" "+entryV1; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := standardwebhooks.Sign(nil, messageV1); got != "" {
		t.Errorf("without keys: %q", got)
	}
}

func TestPU77TextThatIsNoSigningKeyIsRefused(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	seed := signature(t, "x,"+strings.TrimPrefix(privateV4, "whsk_"))[:32]
	unfitting := append(append([]byte(nil), seed...), make([]byte, 32)...)
	for name, text := range map[string]string{
		"empty":                    "",
		"bare prefix":              "whsec_",
		"23 bytes":                 "whsec_" + b64(make([]byte, 23)),
		"65 bytes":                 "whsec_" + b64(make([]byte, 65)),
		"18 bytes, V3":             "whsec_plJ3nmyCDGBKInavdOK15jsl",
		"unprefixed":               b64(make([]byte, 24)),
		"prefix in another case":   "WHSEC_" + b64(make([]byte, 24)),
		"doubled prefix":           "whsec_" + secretV1,
		"doubled private prefix":   "whsk_" + privateV4,
		"unpadded":                 "whsec_" + base64.RawStdEncoding.EncodeToString(make([]byte, 25)),
		"URL-safe":                 "whsec_" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 24)),
		"line break":               secretV1[:20] + "\n" + secretV1[20:],
		"line break at the end":    secretV1 + "\n",
		"blank in front":           " " + secretV1,
		"bits that are of no byte": "whsec_" + strings.TrimSuffix(b64(make([]byte, 25)), "A==") + "B==",
		"seed of 31 bytes":         "whsk_" + b64(seed[:31]),
		"33 bytes":                 "whsk_" + b64(unfitting[:33]),
		"unfitting public half":    "whsk_" + b64(unfitting),
		"bare private prefix":      "whsk_",
		"a public key":             publicV5,
	} {
		_, err := standardwebhooks.ParseSigningKey(text)
		if !errors.Is(err, standardwebhooks.ErrKey) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rest := strings.TrimPrefix(text, "whsec_"); len(rest) > 8 && strings.Contains(err.Error(), rest[len(rest)-8:]) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

// PU-77: lengths are judged alike by every constructor.
func TestPU77LengthsAtTheirBounds(t *testing.T) {
	for size, good := range map[int]bool{0: false, 23: false, 24: true, 64: true, 65: false} {
		secret := bytes.Repeat([]byte{1}, size)
		_, made := standardwebhooks.NewHMACKey(secret)
		_, read := standardwebhooks.ParseSigningKey("whsec_" + base64.StdEncoding.EncodeToString(secret))
		if (made == nil) != good || (read == nil) != good {
			t.Errorf("%d bytes: %v, %v", size, made, read)
		}
	}
	for size, good := range map[int]bool{0: false, 31: false, 32: true, 33: false, 63: false, 65: false} {
		_, made := standardwebhooks.NewEd25519Key(make([]byte, size))
		_, read := standardwebhooks.ParseSigningKey("whsk_" + base64.StdEncoding.EncodeToString(make([]byte, size)))
		if (made == nil) != good || (read == nil) != good {
			t.Errorf("ed25519 of %d bytes: %v, %v", size, made, read)
		}
	}
}

func TestPU77ASeedSignsLikeTheWholeKey(t *testing.T) {
	whole := parse(t, privateV4)
	seed := parse(t, "whsk_"+base64.StdEncoding.EncodeToString(signature(t, "x,"+strings.TrimPrefix(privateV4, "whsk_"))[:32]))
	if seed.Sign(messageV1) != entryV4 {
		t.Error("the seed alone signs otherwise")
	}
	if !seed.Equal(whole) || seed.Reveal() == whole.Reveal() {
		t.Error("the two texts of one key should be equal keys, each with its own text")
	}
	if whole.Public() != publicV5 || seed.Public() != publicV5 || parse(t, secretV1).Public() != "" {
		t.Error("the public text is not that of the key")
	}
}

func TestAKeyEqualsOnlyItself(t *testing.T) {
	hmacKey, edKey := parse(t, secretV1), parse(t, privateV4)
	another, err := standardwebhooks.Generate(standardwebhooks.HMAC, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var none standardwebhooks.SigningKey
	if !hmacKey.Equal(parse(t, secretV1)) || !none.Equal(none) {
		t.Error("equal keys are not")
	}
	if !reflect.DeepEqual(hmacKey, parse(t, secretV1)) || reflect.DeepEqual(hmacKey, another) {
		t.Error("reflect.DeepEqual does not compare keys")
	}
	if hmacKey.Equal(another) || hmacKey.Equal(edKey) || hmacKey.Equal(none) || none.Equal(edKey) {
		t.Error("different keys are equal")
	}
}

func TestGenerateMakesKeysThatParseAndVerify(t *testing.T) {
	for _, algorithm := range []standardwebhooks.Algorithm{standardwebhooks.HMAC, standardwebhooks.Ed25519} {
		key, err := standardwebhooks.Generate(algorithm, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if again := parse(t, key.Reveal()); !again.Equal(key) || key.Algorithm() != algorithm {
			t.Errorf("%s: does not survive its text", algorithm)
		}
		if entry := key.Sign(messageV1); !strings.HasPrefix(entry, string(algorithm)+",") || !key.VerifyingKey().Verify(messageV1, signature(t, entry)) {
			t.Errorf("%s: %s does not verify", algorithm, entry)
		}
	}
	if _, err := standardwebhooks.Generate("v2", rand.Reader); !errors.Is(err, standardwebhooks.ErrKey) {
		t.Errorf("another algorithm: %v", err)
	}
	if _, err := standardwebhooks.Generate(standardwebhooks.HMAC, strings.NewReader("too few")); err == nil {
		t.Error("a key of less randomness than asked")
	}
}

// PU-99: any non-empty key, with or without prefix; no private one.
func TestPU99VerifyingKeysAreRefusedWhenEmptyOrUnreadable(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "bare prefix": "whsec_", "bare public prefix": "whpk_", "private": privateV4, "no base64": "whsec_%%%", "short public": "whpk_AAAA",
	} {
		if _, err := standardwebhooks.ParseVerifyingKey(text); !errors.Is(err, standardwebhooks.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := standardwebhooks.ParseVerifyingKey("whsec_AA=="); err != nil {
		t.Errorf("one byte: %v", err)
	}
}

// PU-8: whatever prints, logs or encodes a key shows the mask, also where the key is a field of something that nobody thought of masking.
func TestPU8KeysAreOpaque(t *testing.T) {
	signing := parse(t, secretV1)
	verifying, err := standardwebhooks.ParseVerifyingKey(secretV1)
	if err != nil {
		t.Fatal(err)
	}
	type exported struct {
		S standardwebhooks.SigningKey
		V standardwebhooks.VerifyingKey
	}
	type hidden struct {
		s standardwebhooks.SigningKey
		v standardwebhooks.VerifyingKey
	}
	holders := []any{signing, &signing, verifying, &verifying, exported{signing, verifying}, hidden{signing, verifying}, []any{signing}, map[string]any{"k": verifying}}
	raw := signature(t, "x,"+strings.TrimPrefix(secretV1, "whsec_"))
	leaks := []string{secretV1[6:], secretV1[10:20], string(raw), fmt.Sprint(raw)[1:20], fmt.Sprintf("%x", raw)[:16], fmt.Sprintf("%X", raw)[:16], fmt.Sprintf("%#v", raw)[7:30]}
	check := func(how, shown string) {
		t.Helper()
		for _, leak := range leaks {
			if strings.Contains(shown, leak) {
				t.Errorf("%s shows the key: %s", how, shown)
			}
		}
	}
	for _, holder := range holders {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			check(verb, fmt.Sprintf(verb, holder))
		}
		text, err := json.Marshal(holder)
		if err != nil {
			t.Fatal(err)
		}
		check("JSON", string(text))
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "k", holder)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "k", holder)
		check("slog", log.String())
	}
	text, err := json.Marshal(exported{signing, verifying})
	if err != nil || string(text) != `{"S":"[secret]","V":"[secret]"}` || fmt.Sprint(signing) != standardwebhooks.Mask || signing.String() != standardwebhooks.Mask {
		t.Errorf("the mask is not what is shown: %s, %v", text, err)
	}
}
