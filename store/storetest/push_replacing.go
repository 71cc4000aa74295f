package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushReplacing is push.md section 2: where a registration begins, and what a Put over a held one does.
var pushReplacing = []Case{
	{Name: "PU-9 a partial update takes the fields it names and no other", Run: pushPartially},
	{Name: "PU-9 a whole Put removes what it does not give; another version is a conflict", Run: pushWhole},
	{Name: "PU-13 RN-16 registrations of a start are made with it, or nothing is", Run: pushWithStart},
	{Name: "PU-14 a fresh registration begins where it is told, and is due at once if that exists", Run: pushBegins},
	{Name: "PU-14 a registration on an earlier run of the chain stays within it", Run: pushBeginsInChain},
	{Name: "PU-18 a replaced registration keeps its cursor, is live and due, and forgets its failures", Run: pushReplaced},
	{Name: "PU-18 an identical Put changes nothing, and a parked row stays parked", Run: pushIdentical},
}

func pushPartially(t *testing.T, h *Harness) {
	f := h.Fix(t)
	take := map[string]func(to, from *rendezvous.Registration){
		"url": func(to, from *rendezvous.Registration) { to.URL = from.URL }, "token": func(to, from *rendezvous.Registration) { to.Token = from.Token },
		"auth": func(to, from *rendezvous.Registration) { to.Auth = from.Auth }, "headers": func(to, from *rendezvous.Registration) { to.Headers = from.Headers },
		"tls": func(to, from *rendezvous.Registration) { to.TLS = from.TLS }, "signing": func(to, from *rendezvous.Registration) { to.Signing = from.Signing },
		"projection":      func(to, from *rendezvous.Registration) { to.Projection = from.Projection },
		"events":          func(to, from *rendezvous.Registration) { to.Events = from.Events },
		"include_payload": func(to, from *rendezvous.Registration) { to.IncludePayload = from.IncludePayload },
		"timeout_ms":      func(to, from *rendezvous.Registration) { to.Timeout = from.Timeout },
		"max_attempts":    func(to, from *rendezvous.Registration) { to.MaxAttempts = from.MaxAttempts },
		"on_reject_limit": func(to, from *rendezvous.Registration) { to.OnRejectLimit = from.OnRejectLimit },
		"trace":           func(to, from *rendezvous.Registration) { to.Trace = from.Trace },
	}
	r := f.Start()
	for i, field := range store.PushFields {
		id := string(rune('a' + i%8))
		must(f.DeletePush(ctx, r.PushKey(id)))(t, "make room")
		was, other := r.whole(id, "1"), r.whole(id, "2")
		other.Timeout, other.MaxAttempts, other.OnRejectLimit = 9*time.Second, 90, 9
		other.Events = []string{"effect.done"}
		r.Puts(was)
		other.Fields = []string{field}
		got := r.Puts(other)
		eq(t, "version of "+field, got.Version, int64(2))
		want := was
		take[field](&want.Registration, &other.Registration)
		wantGiven(t, "after an update of "+field, r.Push(id), want)
	}
	var all store.PutPush
	all.RunID, all.ID, all.Fields = r.ID, "a", []string{"token", "auth"}
	before := r.Push("a")
	r.Puts(all)
	p := r.Push("a")
	eq(t, "an update to nothing", []any{p.Token.Set(), p.Auth.Kind, p.URL, p.Headers}, []any{false, rendezvous.AuthNone, before.URL, before.Headers})
}

func pushWhole(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Puts(r.whole("a", "1"))
	bare := store.PutPush{Registration: rendezvous.Registration{RunID: r.ID, ID: "a", URL: "https://example.org/"}, IfVersion: 1}
	got := r.Puts(bare)
	p := r.Push("a")
	eq(t, "what a whole Put leaves", []any{p.Token.Set(), p.Auth.Kind, len(p.Headers), len(p.Signing), p.TLS, p.Version, got.Created},
		[]any{false, rendezvous.AuthNone, 0, 0, rendezvous.PushTLS{}, int64(2), false})
	for _, stale := range []int64{1, 3, 99} {
		other := r.whole("a", "1")
		other.IfVersion = stale
		_, err := f.PutPush(ctx, other, now)
		code(t, "another version", err, rendezvous.CodeConflict)
		tells(t, "the version that stands", err, int64(2))
		r.Unchanged("after a conflict", p)
	}
	absent := r.Hook("absent")
	absent.IfVersion = 1
	_, err := f.PutPush(ctx, absent, now)
	if err == nil {
		t.Fatal("a Put over version 1 of what is not there made it")
	}
	r.NoPush("absent")
}

func pushWithStart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	start := func(puts ...store.PutPush) store.Start {
		return store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Push: puts}
	}
	hook := func(id string) store.PutPush {
		return store.PutPush{Registration: rendezvous.Registration{ID: id, URL: "https://" + ID("host") + ".example.org/"}}
	}
	for _, f := range h.Two(t) {
		s := start(hook("a"), hook(""))
		started := must(f.StartRun(ctx, s, now))(t, "start")
		r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
		for _, id := range []string{"a", "push-" + r.ID} {
			r.WantCursor(id, 1, 0)
			r.WantDue("with its start", id, now, true)
		}
		r.wantPush("of the start", started.Notices)
		rows := must(f.ListPush(ctx, r.ID))(t, "list")
		again := must(f.StartRun(ctx, s, now))(t, "start again")
		eq(t, "first", []bool{started.First, again.First}, []bool{true, false})
		eq(t, "registrations of the start again", must(f.ListPush(ctx, r.ID))(t, "list"), rows)
	}
	named, faulty, operator, late := hook("a"), hook("b"), hook("operator:x"), hook("c")
	named.RunID = "other"
	faulty.Auth = rendezvous.PushAuth{Kind: rendezvous.AuthScheme, Scheme: "Bearer"}
	late.NextSeq = 3
	var eleven []store.PutPush
	for range rendezvous.MaxRegistrationsPerRun + 1 {
		eleven = append(eleven, hook(ID("hook")))
	}
	for what, c := range map[string]struct {
		puts []store.PutPush
		want rendezvous.Code
	}{
		"naming a run": {[]store.PutPush{hook("ok"), named}, rendezvous.CodeInvalid}, "bad auth": {[]store.PutPush{hook("ok"), faulty}, rendezvous.CodeInvalid},
		"an operator's id": {[]store.PutPush{operator}, rendezvous.CodeUnauthorized}, "beyond the head": {[]store.PutPush{late}, rendezvous.CodeInvalid},
		"eleven": {eleven, rendezvous.CodeTooLarge},
	} {
		s := start(c.puts...)
		_, err := f.StartRun(ctx, s, now)
		code(t, what, err, c.want)
		_, err = f.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: s.WorkflowID})
		code(t, "the workflow after "+what, err, rendezvous.CodeNotFound)
		eq(t, "registrations after "+what, must(f.ListPush(ctx, s.RunID))(t, "list"), nil)
	}
}

func pushBegins(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m")) // head 3
	begin := func(id string, next int64) (store.PushPut, error) {
		p := r.Hook(id)
		p.NextSeq = next
		return f.PutPush(ctx, p, now)
	}
	for i, c := range []struct{ asked, stands int64 }{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {0, 4}} {
		got := must(begin(string(rune('a'+i)), c.asked))(t, "put")
		eq(t, "cursor", got.Cursor, at(c.stands, 0))
		r.WantDue("at once", got.ID, now, c.stands <= 3)
		if c.stands <= 3 {
			eq(t, "state", got.State, rendezvous.PushLive)
			r.wantPush("of what is due", got.Notices)
		} else {
			eq(t, "state", got.State, rendezvous.PushIdle)
			eq(t, "notice", r.pushed(got.Notices), nil)
		}
	}
	for _, beyond := range []int64{5, 1000} {
		_, err := begin("x", beyond)
		code(t, "beyond the head", err, rendezvous.CodeInvalid, "field", "next_seq")
		r.NoPush("x")
	}
	r.Conclude(rendezvous.StatusCompleted) // 4
	for i, c := range []struct{ asked, stands int64 }{{0, 4}, {5, 5}} {
		got := must(begin("sealed"+string(rune('a'+i)), c.asked))(t, "put")
		eq(t, "cursor on a sealed run", got.Cursor, at(c.stands, 0))
		r.WantDue("at once, if only to be completed (PU-45)", got.ID, now, true)
	}
}

func pushBeginsInChain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first := f.Start()       // 1
	next := first.Continue() // 2, 3
	next.AppendFree(next.Noted("n"))
	for i, c := range []struct {
		r             *Flow
		asked, stands int64
		refused       rendezvous.Code
	}{
		{first, 0, 2, ""},
		{first, 1, 1, ""},
		{next, 1, 3, ""},
		{next, 2, 3, ""},
		{next, 3, 3, ""},
		{next, 0, 5, ""},
		{next, 6, 0, rendezvous.CodeInvalid},
		{first, 6, 0, rendezvous.CodeInvalid},
	} {
		p := c.r.Hook(string(rune('a' + i)))
		p.NextSeq = c.asked
		got, err := f.PutPush(ctx, p, now)
		if c.refused != "" {
			code(t, "beyond the head", err, c.refused)
			continue
		}
		done(t, "put", err)
		eq(t, "cursor", got.Cursor, at(c.stands, 0))
		c.r.WantDue("at once", p.ID, now, c.stands < 5)
	}
}

func pushReplaced(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, parked := range []bool{false, true} {
		r := f.Start()
		r.AppendFree(r.Noted("n"), r.Noted("m"))
		p := r.Hook("a")
		p.NextSeq = 1
		r.Puts(p)
		must(f.AdvancePush(ctx, r.PushKey("a"), 0, at(2, 1)))(t, "advance")
		r.Retries("a", 0, h.In(t, time.Hour))
		if parked {
			r.Stop("a", rendezvous.ParkGone)
		}
		before := r.Push("a")
		h.Advance(time.Second)
		p.NextSeq, p.URL = 4, "https://other.example.org/"
		got := r.Puts(p)
		r.wantPush("of a replaced one", got.Notices)
		want := *before
		want.Registration, want.Gate, want.Version = got.Registration, "https://other.example.org:443", 2
		want.State, want.Attempts, want.FailingSince, want.Error, want.Reason, want.ParkedAt = rendezvous.PushLive, 0, time.Time{}, "", "", time.Time{}
		want.NextAttemptAt = got.NextAttemptAt
		eq(t, "the row", *r.Push("a"), want)
		eq(t, "the URL", got.URL, p.URL)
		if got.NextAttemptAt.After(h.Now(t)) {
			t.Fatalf("due at %s", got.NextAttemptAt)
		}
		r.WantDue("at once", "a", now, true)
		p.Projection = rendezvous.ProjectionA2A
		r.Puts(p)
		r.WantCursor("a", 2, 0)
	}
}

func pushIdentical(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.whole("a", "1")
	first := r.Puts(p)
	h.Advance(time.Second)
	again := r.Puts(p)
	eq(t, "the same row", again.Push, first.Push)
	eq(t, "created while at version 1", again.Created, true)
	r.Retries("a", 0, h.In(t, time.Hour))
	r.Stop("a", rendezvous.ParkByOperator)
	before := r.Push("a")
	p.NextSeq = 2
	got := r.Puts(p)
	eq(t, "the row", got.Push, *before)
	r.Unchanged("after an identical Put", before)
	r.WantDue("while parked", "a", endOfTime, false)
	p.IfVersion = 2
	_, err := f.PutPush(ctx, p, now)
	code(t, "an identical Put over another version", err, rendezvous.CodeConflict)
	p.IfVersion = 0
	must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark")
	c := h.Pusher(t).Take(r)
	r.Puts(p)
	eq(t, "the lease after an identical Put", h.Pusher(t).Renew(c.Token).State, store.PushLeaseHeld)
}
