package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushRegistering is push.md sections 1 and 2: Put, Get, List, Delete.
var pushRegistering = []Case{
	{Name: "PU-1 a registration comes back as it was put, with its secrets", Run: pushComesBack},
	{Name: "PU-1 every kind of authorization and TLS comes back", Run: func(t *testing.T, h *Harness) { pushAuthComesBack(t, h, false) }},
	{Name: "PU-1 registrations come back after a restart", Run: func(t *testing.T, h *Harness) { pushAuthComesBack(t, h, true) }, Durable: true},
	{Name: "PU-1 what is left out has its default", Run: pushDefaults},
	{Name: "PU-1 List answers a run's by the bytes of their ids", Run: pushListed},
	{Name: "PU-1 Delete twice is well, and the id is free again", Run: pushDeletedTwice},
	{Name: "PU-2 I14 another tenant's handle sees and moves nothing", Run: pushTenantsApart},
	{Name: "PU-2 I14 equal runs and ids in two tenants are strangers", Run: pushTenantsAlike},
	{Name: "PU-3 an unknown run is not found; without an id the row is push- and the run's id", Run: pushOfItsRun},
	{Name: "PU-4 the eleventh registration of a run is too large; one that is held is replaced", Run: pushPerRun},
	{Name: "PU-4 of twelve Puts at once exactly ten succeed", Run: pushPerRunAtOnce},
	{Name: "PU-5 ids of 1 to 128 bytes; an operator's id is unauthorized", Run: pushIDs},
	{Name: "PU-7 PU-8 a faulty registration is refused by its field, without its value, and nothing is stored", Run: pushFaults},
	{Name: "PU-8 a secret is in no row's text and in no error", Run: pushSecretsMasked},
}

// whole is a registration with something in every field.
func (r *Flow) whole(id string, n string) store.PutPush {
	on := n != "2"
	return store.PutPush{NextSeq: 1, Registration: rendezvous.Registration{
		RunID: r.ID, ID: id, URL: "https://example.org:8443/hook" + n + "?q=" + n, Token: secret("token" + n),
		Auth:       rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer" + n, Credentials: secret("credentials " + n)},
		Headers:    []rendezvous.PushHeader{{Name: "X-b" + n, Value: secret("v " + n)}, {Name: "x-A" + n, Value: secret("w" + n)}},
		TLS:        rendezvous.PushTLS{Authorities: authorityPEM(r.F.T, "ca"+n)},
		Signing:    []rendezvous.SigningKey{{Key: signingKey(n + "b")}, {Key: signingKey(n + "a"), ExpiresAt: endOfTime}},
		Projection: map[bool]rendezvous.Projection{true: rendezvous.ProjectionA2A, false: rendezvous.ProjectionCloudEvents}[on],
		Events:     []string{"note", "run.completed", "wait.answered"}[len(n):], IncludePayload: &on, Trace: &on,
		Timeout: time.Duration(1+len(n)) * time.Second, MaxAttempts: 7 + len(n), OnRejectLimit: 3 + len(n),
	}}
}

// signingKey is an HMAC key of that name.
func signingKey(name string) rendezvous.Secret {
	return secret("whsec_" + base64Of(strings.Repeat(name+".", 32)[:32]))
}

// given is a stored registration as its caller gave it: what the store fills in of keys is judged and taken out.
func given(t testing.TB, p *store.Push) rendezvous.Registration {
	t.Helper()
	reg := p.Registration
	reg.Signing = slices.Clone(reg.Signing)
	for i, k := range reg.Signing {
		if k.ID == "" || k.Algorithm != "v1" || k.Public != "" || k.CreatedAt.IsZero() {
			t.Fatalf("a stored key is not described: %+v", k.View())
		}
		reg.Signing[i] = rendezvous.SigningKey{Key: k.Key, ExpiresAt: k.ExpiresAt}
	}
	return reg
}

// wantGiven fails the test unless the row holds the registration that was put.
func wantGiven(t testing.TB, what string, p *store.Push, put store.PutPush) {
	t.Helper()
	want := must(put.Registration.Check(p.CreatedAt))(t, "check what was put")
	want.Signing = slices.Clone(put.Signing)
	eq(t, what, given(t, p), want)
}

func pushComesBack(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		before := h.Now(t)
		put := r.whole("a", "1")
		got := r.Puts(put)
		p := r.Push("a")
		eq(t, "the answer", got.Push, *p)
		eq(t, "created", got.Created, true)
		r.wantPush("of a registration that is due", got.Notices)
		wantGiven(t, "the registration", p, put)
		eq(t, "whose", []any{p.Tenant, p.WorkflowID, p.Key(), p.Namespace, p.Gate, p.Version},
			[]any{f.Name(), r.WorkflowID, r.PushKey("a"), rendezvous.PushCaller, "https://example.org:8443", int64(1)})
		eq(t, "where", []any{p.Cursor, p.State, p.Attempts, p.Rejects, p.AttemptNo, p.Lost, p.Error, p.Reason, p.Last == nil},
			[]any{at(1, 0), rendezvous.PushLive, 0, 0, int64(0), 0, "", rendezvous.ParkReason(""), true})
		eq(t, "no instants", []bool{p.FailingSince.IsZero(), p.ParkedAt.IsZero(), p.LeaseUntil.IsZero()}, []bool{true, true, true})
		if p.CreatedAt.Before(before) || p.CreatedAt.After(h.Now(t)) {
			t.Fatalf("created at %s", p.CreatedAt)
		}
		eq(t, "secrets", []string{p.Token.Reveal(), p.Auth.Credentials.Reveal(), p.Headers[0].Value.Reveal(), p.Headers[1].Name},
			[]string{"token1", "credentials 1", "v 1", "x-A1"})
		eq(t, "listed", must(f.ListPush(ctx, r.ID))(t, "list"), []store.Push{*p})
	}
}

func pushAuthComesBack(t *testing.T, h *Harness, restart bool) {
	f := h.Fix(t)
	r := f.Start()
	certificate, key := clientPEM(t, h.Now(t).Add(time.Hour))
	puts := map[string]store.PutPush{}
	for id, set := range map[string]func(*rendezvous.Registration){
		"none": func(*rendezvous.Registration) {},
		"scheme": func(x *rendezvous.Registration) {
			x.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "ApiKey", Credentials: secret("a b=c")}
		},
		"basic": func(x *rendezvous.Registration) {
			x.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthBasic, User: "kim", Password: secret("p:w")}
		},
		"oauth2": func(x *rendezvous.Registration) {
			x.Auth = rendezvous.PushAuth{
				Kind: rendezvous.AuthOAuth2, TokenURL: "https://id.example.org/token", ClientID: "c", ClientSecret: secret("s"), Scopes: []string{"push", "more"},
			}
		},
		"tls": func(x *rendezvous.Registration) {
			x.TLS = rendezvous.PushTLS{Certificates: certificate, Key: secret(key)}
		},
		"ca": func(x *rendezvous.Registration) { x.TLS = rendezvous.PushTLS{Authorities: certificate} },
	} {
		put := r.Hook(id)
		set(&put.Registration)
		r.Puts(put)
		puts[id] = put
	}
	look := func(what string, f *Fix) {
		t.Helper()
		r := Flow{F: f, WorkflowID: r.WorkflowID, ID: r.ID}
		for id, put := range puts {
			wantGiven(t, id+" "+what, r.Push(id), put)
		}
	}
	look("as put", f)
	if restart {
		h.Reopen(t)
		look("after a restart", h.Fix(t))
	}
}

func pushDefaults(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Puts(store.PutPush{Registration: rendezvous.Registration{RunID: r.ID, URL: "http://Example.org/hook"}})
	p := r.Push("push-" + r.ID)
	eq(t, "defaults", []any{p.Projection, p.Timeout, p.MaxAttempts, p.OnRejectLimit, *p.IncludePayload, *p.Trace, p.Auth.Kind, p.Token.Set(), len(p.Signing)},
		[]any{rendezvous.ProjectionCloudEvents, 15 * time.Second, 64, 8, false, false, rendezvous.AuthNone, false, 0})
	for _, e := range p.Events {
		if !strings.HasPrefix(e, "run.") && !strings.HasPrefix(e, "wait.") {
			t.Errorf("a caller takes %s where it says nothing", e)
		}
	}
	eq(t, "kinds", len(p.Events), 13)
	eq(t, "gate", p.Gate, "http://example.org:80")
	other := r.Hook("gate")
	other.Gate = "https://judged.example.org:443"
	eq(t, "gate as judged above", r.Puts(other).Gate, other.Gate)
}

func pushListed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	ids := []string{"b", "a", "B", "é", "z", "10", "9", "a b", "日本"}
	for _, id := range ids {
		r.Follows(id)
	}
	other.Follows("elsewhere")
	var got []string
	for _, p := range must(f.ListPush(ctx, r.ID))(t, "list") {
		got = append(got, p.ID)
		r.Unchanged("in the list", &p)
	}
	slices.Sort(ids)
	eq(t, "ids", got, ids)
	eq(t, "of an unknown run", must(f.ListPush(ctx, "unknown"))(t, "list"), nil)
	eq(t, "an absent one", must(f.GetPush(ctx, r.PushKey("absent")))(t, "get"), nil)
}

func pushDeletedTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	other := r.Follows("b")
	r.Advances("a", 0, 2)
	for range 2 {
		eq(t, "quiet at", must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete").QuietAt.IsZero(), true)
		r.NoPush("a")
		eq(t, "due", f.Due(now), []string{r.ID + "/b"})
	}
	r.Unchanged("beside the deleted one", other)
	eq(t, "registrations counted", r.Describe().Registrations, 1)
	got := r.Puts(r.Hook("a"))
	eq(t, "made anew", []any{got.Created, got.Version, got.Cursor}, []any{true, int64(1), at(3, 0)})
	must(f.DeletePush(ctx, r.PushKey("never")))(t, "delete what never was")
	must(f.DeletePush(ctx, store.PushKey{RunID: "unknown", ID: "a"}))(t, "delete of an unknown run")
}

func pushTenantsApart(t *testing.T, h *Harness) {
	acme, globex := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	r := acme.Start()
	row := r.Follows("a")
	parked := r.Parks("p")
	stranger := &Flow{F: globex, WorkflowID: r.WorkflowID, ID: r.ID}
	_, err := globex.PutPush(ctx, stranger.Hook("a"), now)
	code(t, "put on another tenant's run", err, rendezvous.CodeNotFound)
	for _, id := range []string{"a", "p"} {
		key := r.PushKey(id)
		stranger.NoPush(id)
		for _, m := range stranger.pushMissing(id) {
			code(t, m.name+" of another tenant's", m.call(), rendezvous.CodeNotFound)
		}
		must(globex.DeletePush(ctx, key))(t, "delete")
		done(t, "complete", globex.CompletePush(ctx, key, 0, 2))
		eq(t, "unparked", must(globex.UnparkPush(ctx, key, now, ""))(t, "unpark"), false)
		eq(t, "log", len(stranger.Log(id)), 0)
	}
	eq(t, "due", globex.Due(now), nil)
	eq(t, "due of the namespace", must(globex.DuePushIn(ctx, now, 0, rendezvous.PushCaller))(t, "list"), store.DuePushes{})
	eq(t, "due beside the namespace", must(globex.DuePushIn(ctx, now, 0, rendezvous.PushOperator))(t, "list"), store.DuePushes{})
	eq(t, "parked", globex.parkedPushes(store.PushParkedFilter{}, 0), nil)
	eq(t, "many unparked", must(globex.UnparkPushes(ctx, store.UnparkPushes{}))(t, "unpark many"), store.PushesUnparked{})
	r.Unchanged("after another tenant's calls", row)
	r.Unchanged("after another tenant's calls", parked)
	eq(t, "whose rows", []string{acme.Name(), globex.Name()}, []string{"acme", "globex"})
}

// pushMissing are the verbs that say not_found of a registration that is not there.
func (r *Flow) pushMissing(id string) []named {
	f, key := r.F, r.PushKey(id)
	return []named{
		{"AdvancePush", func() error { _, err := f.AdvancePush(ctx, key, 0, at(1, 0)); return err }},
		{"RetryPush", func() error { return f.RetryPush(ctx, key, 0, f.H.Now(f.T), "x") }},
		{"ParkPush", func() error { return f.ParkPush(ctx, store.ParkPush{PushKey: key, Reason: rendezvous.ParkByOperator}) }},
		{"SkipPush", func() error {
			_, err := f.SkipPush(ctx, store.PushSkip{PushKey: key, Seq: 1, Actor: "kim"})
			return err
		}},
		{"RotatePush", func() error { _, err := f.RotatePush(ctx, store.PushRotation{PushKey: key, Op: ID("op")}); return err }},
		{"PutPush of some fields", func() error {
			p := r.Hook(id)
			p.Fields = []string{"url"}
			_, err := f.PutPush(ctx, p, now)
			return err
		}},
		{"LogPush", func() error {
			_, err := f.LogPush(ctx, key, rendezvous.PushAttempt{ID: ID("entry"), Class: rendezvous.ClassAccepted, Test: true})
			return err
		}},
	}
}

func pushTenantsAlike(t *testing.T, h *Harness) {
	two := h.Two(t)
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	var runs []*Flow
	for _, f := range two {
		r := f.StartAs(s)
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		runs = append(runs, r)
	}
	other := runs[1].Push("a")
	runs[0].Advances("a", 0, 2)
	runs[0].Retries("a", 0, h.In(t, time.Hour))
	runs[0].Stop("a", rendezvous.ParkByOperator)
	runs[1].Unchanged("after the other tenant's", other)
	w := h.Pusher(t)
	eq(t, "claimed", claimed(w.Claim(0).Pushes), []string{other.Tenant + "/" + other.RunID + "/a"})
	must(two[0].DeletePush(ctx, runs[0].PushKey("a")))(t, "delete")
	runs[1].Push("a")
	eq(t, "log of the other", len(runs[1].Log("a")), 0)
}

func pushOfItsRun(t *testing.T, h *Harness) {
	f := h.Fix(t)
	unknown := &Flow{F: f, ID: "unknown"}
	_, err := f.PutPush(ctx, unknown.Hook("a"), now)
	code(t, "an unknown run", err, rendezvous.CodeNotFound)
	unknown.NoPush("a")
	r := f.Start()
	for i, url := range []string{"https://one.example.org/", "https://two.example.org/"} {
		p := r.Hook("")
		p.URL = url
		got := r.Puts(p)
		eq(t, "made", []any{got.ID, got.URL, got.Created, got.Version}, []any{"push-" + r.ID, url, i == 0, int64(i + 1)})
	}
	eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 1)
	r.Conclude(rendezvous.StatusCompleted)
	r.Follows("sealed")
}

func pushPerRun(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"}, rendezvous.Destination{Name: "billing"})
	for _, f := range h.Two(t) {
		r, other := f.Start(), f.Start()
		eq(t, "operators' rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 2)
		for i := range rendezvous.MaxRegistrationsPerRun {
			r.Follows(string(rune('a' + i)))
		}
		_, err := f.PutPush(ctx, r.Hook("over"), now)
		code(t, "one more", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxRegistrationsPerRun, "value", rendezvous.MaxRegistrationsPerRun+1)
		r.NoPush("over")
		r.Puts(r.Hook("a"))
		other.Follows("of another run")
		must(f.DeletePush(ctx, r.PushKey("b")))(t, "delete")
		r.Follows("in its place")
		_, err = f.PutPush(ctx, r.Hook("over"), now)
		code(t, "one more again", err, rendezvous.CodeTooLarge)
		eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), rendezvous.MaxRegistrationsPerRun+2)
		eq(t, "registrations counted", r.Describe().Registrations, rendezvous.MaxRegistrationsPerRun+2)
	}
}

func pushPerRunAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		var errs [12]error
		var puts []func()
		for i := range errs {
			p := r.Hook(ID("hook"))
			puts = append(puts, func() { _, errs[i] = f.PutPush(ctx, p, now) })
		}
		Race(t, puts...)
		went := 0
		for _, err := range errs {
			if err == nil {
				went++
				continue
			}
			code(t, "one too many", err, rendezvous.CodeTooLarge)
		}
		eq(t, "put", went, rendezvous.MaxRegistrationsPerRun)
		eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), rendezvous.MaxRegistrationsPerRun)
	}
}

func pushIDs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for id, want := range map[string]rendezvous.Code{
		strings.Repeat("i", 128): "", strings.Repeat("é", 64): "", strings.Repeat("i", 129): rendezvous.CodeInvalid, "a\x00": rendezvous.CodeInvalid,
		"a\x7f": rendezvous.CodeInvalid, "\xff": rendezvous.CodeInvalid, "operator:x": rendezvous.CodeUnauthorized, "Operator:x": rendezvous.CodeUnauthorized,
		"OPERATOR:": rendezvous.CodeUnauthorized, "operatorx": "", "xoperator:": "",
	} {
		_, err := f.PutPush(ctx, r.Hook(id), now)
		eq(t, "code of "+id, rendezvous.CodeOf(err), want)
		if want == "" {
			r.Push(id)
		}
	}
	eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 4)
}

func pushFaults(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	const planted = "Pl4nted"
	faults := map[string]struct {
		field string
		set   func(*rendezvous.Registration)
	}{
		"url":   {"url", func(x *rendezvous.Registration) { x.URL = "/" + planted }},
		"token": {"token", func(x *rendezvous.Registration) { x.Token = secret(planted + "\r\n") }},
		"auth": {"auth.credentials", func(x *rendezvous.Registration) {
			x.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer", Credentials: secret(planted + "\n")}
		}},
		"header": {"headers", func(x *rendezvous.Registration) {
			x.Headers = []rendezvous.PushHeader{{Name: "Cookie", Value: secret(planted)}}
		}},
		"key": {"signing", func(x *rendezvous.Registration) {
			x.Signing = []rendezvous.SigningKey{{Key: secret("whsec_" + planted)}}
		}},
		"old key": {"signing", func(x *rendezvous.Registration) {
			x.Signing = []rendezvous.SigningKey{{Key: signingKey(planted), ExpiresAt: h.Now(t)}}
		}},
		"events": {"events", func(x *rendezvous.Registration) { x.Events = []string{planted} }},
		"follow": {"follow", func(x *rendezvous.Registration) { x.Follow = rendezvous.FollowChain }},
	}
	for name, fault := range faults {
		p := r.Hook("faulty")
		fault.set(&p.Registration)
		_, err := f.PutPush(ctx, p, now)
		code(t, name, err, rendezvous.CodeInvalid, "field", fault.field)
		if strings.Contains(sayAll(err), planted) {
			t.Errorf("%s: %s repeats the value", name, sayAll(err))
		}
	}
	for field, set := range map[string]func(*store.PutPush){
		"next_seq": func(p *store.PutPush) { p.NextSeq = -1 },
		"fields":   func(p *store.PutPush) { p.Fields = []string{"nothing"} },
	} {
		p := r.Hook("faulty")
		set(&p)
		_, err := f.PutPush(ctx, p, now)
		code(t, "a wrong "+field, err, rendezvous.CodeInvalid, "field", field)
	}
	r.NoPush("faulty")
	row := r.Follows("sound")
	for _, fault := range faults {
		p := r.Hook("sound")
		fault.set(&p.Registration)
		_, err := f.PutPush(ctx, p, now)
		code(t, "a faulty replacement", err, rendezvous.CodeInvalid)
	}
	r.Unchanged("after faulty replacements", row)
}

func pushSecretsMasked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.whole("a", "1")
	p.Token, p.Auth.Credentials, p.Headers[0].Value = secret("pl4nted-1"), secret("pl4nted-2"), secret("pl4nted-3")
	p.Signing[0].Key = signingKey("pl4nted-4")
	p.URL = "https://example.org/pl4nted-5?pl4nted-6"
	got := r.Puts(p)
	w := h.Pusher(t)
	c := w.Take(r)
	text := sayAll(got.Push.Token, got.Push.Auth, got.Push.Headers, got.Push.Signing, got.View(), c.Registration.Auth, c.Headers)
	p.IfVersion = 7
	_, err := f.PutPush(ctx, p, now)
	text += sayAll(err)
	text += sayAll(f.RetryPush(ctx, r.PushKey("a"), c.Token+1000, now, "x"))
	_, err = f.SkipPush(ctx, store.PushSkip{PushKey: r.PushKey("a"), Seq: 9, Actor: "kim"})
	text += sayAll(err)
	text = strings.ReplaceAll(text, "https://example.org/pl4nted-5?pl4nted-6", "") // a view shows the URL
	if strings.Contains(text, "pl4nted") || strings.Contains(text, p.Signing[0].Key.Reveal()) {
		t.Errorf("a secret is told: %s", text)
	}
	h.Advance(pushLeaseEnd)
	w.Take(r)
	for _, a := range r.Log("a") {
		if strings.Contains(sayAll(a), "pl4nted") {
			t.Errorf("the log tells a secret: %+v", a)
		}
	}
}
