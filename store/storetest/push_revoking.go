package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushRevoking is push.md section 2, "Revoking", and Rotate (section 9).
var pushRevoking = []Case{
	{Name: "PU-32 a Put during a POST: nobody claims until the token is handed in; the next holder has the new values", Run: pushPutWhileSending},
	{Name: "PU-32 a revoked lease ends at its expiry if nobody hands it in", Run: pushRevokedExpires},
	{Name: "PU-32 every settlement that ends the lease hands a revoked token in; keep does not", Run: pushHandedIn},
	{Name: "PU-32 a late acceptance moves the cursor and does not clear what was set", Run: pushLateAcceptance},
	{Name: "PU-31 Renew answers revoked after Put, Rotate, Park, Skip and Delete", Run: pushRevokedBy},
	{Name: "PU-33 an operator's park during a POST: a late 2xx counts, a late failure does not", Run: pushParkWhileSending},
	{Name: "PU-33 a row unparked during its former lease waits for it", Run: pushUnparkWhileSending},
	{Name: "PU-34 Delete during a POST: gone from reads, quiet_at is the lease's end, the same again", Run: pushDeleteWhileSending},
	{Name: "PU-34 an id put again over a deleted one is a new incarnation under the same wait", Run: pushNewIncarnation},
	{Name: "PU-34 an id deleted and put again and again waits for the first lease", Run: pushIncarnations},
	{Name: "PU-34 what a tool completes while a revoked holder sends waits for it too, when it is put again", Run: pushToolCompletesWhileSending},
	{Name: "PU-9 a partial update is no matter of keys whose grace is over", Run: pushPartlyAfterGrace},
	{Name: "PU-75 Rotate puts a given or generated key first, and ends the older ones after grace", Run: pushRotates},
	{Name: "PU-75 a rotation repeated by its op shows the same key, for ten minutes", Run: pushRotatesAgain},
	{Name: "PU-75 a sixth unexpired key is too large; expired ones make room", Run: pushSixthKey},
	{Name: "PU-75 keys that are none, or there already, are refused without being told", Run: pushWrongKeys},
}

func pushPutWhileSending(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	p := r.Hook("a")
	p.NextSeq = 1
	r.Puts(p)
	w := h.Pusher(t)
	c := w.Take(r)
	p.URL, p.Token = "https://new.example.org/", secret("new")
	got := r.Puts(p)
	eq(t, "lease", got.LeaseUntil, c.ExpiresAt)
	r.WantDue("under the former lease", "a", now, false)
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	h.Advance(pushLease - 2*time.Second)
	eq(t, "claimed a moment before the end", len(h.Pusher(t).ClaimOf(r)), 0)
	out := w.SettleAll(settling(c, store.PushRelease))[0]
	code(t, "hand-in", out.Err, rendezvous.CodeFenced)
	eq(t, "state", out.State, store.PushLeaseRevoked)
	next := h.Pusher(t).Take(r)
	eq(t, "the next POST's", []string{next.URL, next.Registration.Token.Reveal()}, []string{p.URL, "new"})
	eq(t, "lost", []int{next.Lost, len(r.Log("a"))}, []int{0, 0})
}

func pushRevokedExpires(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.Hook("a")
	p.NextSeq = 1
	r.Puts(p)
	w := h.Pusher(t)
	c := w.Take(r)
	p.URL = "https://new.example.org/"
	r.Puts(p)
	eq(t, "renewed", w.Renew(c.Token), store.PushLease{Token: c.Token, State: store.PushLeaseRevoked})
	h.Advance(pushLeaseEnd)
	r.WantDue("after the former lease", "a", now, true)
	next := h.Pusher(t).Take(r)
	eq(t, "renewed after a takeover", w.Renew(c.Token).State, store.PushLeaseFenced)
	eq(t, "url", next.URL, p.URL)
}

func pushHandedIn(t *testing.T, h *Harness) {
	f := h.Fix(t)
	revoked := func() (*Flow, *Pusher, store.ClaimedPush) {
		t.Helper()
		r := f.Start()
		r.Follows("a")
		w := h.Pusher(t)
		c := w.Take(r)
		r.Puts(r.Hook("a"))
		return r, w, c
	}
	for _, do := range []store.PushSettle{store.PushRelease, store.PushRetry, store.PushPark} {
		r, w, c := revoked()
		keep := settling(c, store.PushKeep)
		eq(t, "keep", w.SettleAll(keep)[0].State, store.PushLeaseRevoked)
		eq(t, "claimed after keep", len(h.Pusher(t).ClaimOf(r)), 0)
		before := r.Push("a")
		s := settling(c, do)
		out := w.SettleAll(s)[0]
		code(t, string(do)+" under a revoked token", out.Err, rendezvous.CodeFenced)
		want := *before
		want.LeaseUntil = time.Time{}
		r.Unchanged("after a late "+string(do), &want)
		h.Pusher(t).Take(r)
	}
	for name, call := range map[string]func(r *Flow, token int64) error{
		"RetryPush": func(r *Flow, token int64) error {
			return f.RetryPush(ctx, r.PushKey("a"), token, h.In(t, time.Hour), "late")
		},
		"ParkPush": func(r *Flow, token int64) error {
			return f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Token: token, Reason: rendezvous.ParkGone})
		},
	} {
		r, _, c := revoked()
		before := r.Push("a")
		code(t, name, call(r, c.Token), rendezvous.CodeFenced)
		p := r.Push("a")
		p.LeaseUntil, before.LeaseUntil = time.Time{}, time.Time{}
		eq(t, "the row after a late "+name, p, before)
	}
}

func pushLateAcceptance(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	r.Puts(r.Hook("a"))
	s := settling(c, store.PushRelease)
	s.Advance, s.LogAccepted = ptr(at(3, 0)), true
	out := w.SettleAll(s)[0]
	eq(t, "what a late settlement accepted", []any{out.State, out.Cursor}, []any{store.PushLeaseRevoked, at(3, 0)})
	r.WantCursor("a", 3, 0)
	must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	r.Follows("b")
	c = w.Take(r)
	r.Puts(r.Hook("b"))
	eq(t, "advance", r.Advances("b", c.Token, 2), store.PushAdvanced{Cursor: at(2, 0), Owned: false})
}

func pushRevokedBy(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for name, revoke := range map[string]func(r *Flow) error{
		"Put": func(r *Flow) error { _, err := f.PutPush(ctx, r.Hook("a"), now); return err },
		"Rotate": func(r *Flow) error {
			_, err := f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Op: "o"})
			return err
		},
		"Park":   func(r *Flow) error { r.Stop("a", rendezvous.ParkByOperator); return nil },
		"Delete": func(r *Flow) error { _, err := f.DeletePush(ctx, r.PushKey("a")); return err },
		"Skip":   func(r *Flow) error { r.Stop("a", rendezvous.ParkByOperator); _, err := r.skip("a", 1); return err },
		"a part": func(r *Flow) error {
			p := r.Hook("a")
			p.Fields = []string{"url"}
			_, err := f.PutPush(ctx, p, now)
			return err
		},
	} {
		r := f.Start()
		r.Follows("a")
		w := h.Pusher(t)
		c := w.Take(r)
		done(t, name, revoke(r))
		for range 2 {
			eq(t, "renewed after "+name, w.Renew(c.Token), store.PushLease{Token: c.Token, State: store.PushLeaseRevoked})
		}
		eq(t, "claimed after "+name, len(h.Pusher(t).ClaimOf(r)), 0)
	}
}

func pushParkWhileSending(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	r.Stop("a", rendezvous.ParkByOperator)
	s := settling(c, store.PushKeep)
	s.Advance = ptr(at(2, 0))
	eq(t, "a late 2xx", w.SettleAll(s)[0].Cursor, at(2, 0))
	p := r.WantCursor("a", 2, 0)
	eq(t, "still parked", []any{p.State, p.Reason}, []any{rendezvous.PushParked, rendezvous.ParkByOperator})
	late := settling(c, store.PushRetry)
	late.At = h.In(t, time.Minute)
	code(t, "a late failure", w.SettleAll(late)[0].Err, rendezvous.CodeFenced)
	want := *p
	want.LeaseUntil = time.Time{}
	got := r.Push("a")
	got.LeaseUntil = time.Time{}
	eq(t, "the row after a late failure", *got, want)
	h.Advance(time.Hour)
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
}

func pushUnparkWhileSending(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	r.Stop("a", rendezvous.ParkByOperator)
	eq(t, "unparked", must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark"), true)
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	eq(t, "renewed", w.Renew(c.Token).State, store.PushLeaseRevoked)
	h.Advance(pushLeaseEnd)
	h.Pusher(t).Take(r)
}

func pushDeleteWhileSending(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	for range 2 {
		eq(t, "quiet at", must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete").QuietAt, c.ExpiresAt)
		r.NoPush("a")
		eq(t, "due", f.Due(endOfTime), nil)
		eq(t, "parked", f.parkedPushes(store.PushParkedFilter{}, 0), nil)
		eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	}
	for _, m := range r.pushMissing("a") {
		code(t, m.name+" of a deleted one", m.call(), rendezvous.CodeNotFound)
	}
	eq(t, "unparked", must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark"), false)
	eq(t, "renewed", w.Renew(c.Token).State, store.PushLeaseRevoked)
	appended := r.AppendFree(r.Noted("m"))
	eq(t, "notice for a deleted one", r.pushed(appended.Notices), nil)
	h.Advance(pushLeaseEnd)
	eq(t, "due at the end", f.Due(endOfTime), nil)
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	eq(t, "renewed at the end", w.Renew(c.Token).State != store.PushLeaseHeld, true)
	h.Advance(time.Hour)
	eq(t, "quiet long ago", must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete").QuietAt.After(h.Now(t)), false)
}

func pushNewIncarnation(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	w := h.Pusher(t)
	r.Advances("a", 0, 2)
	c := w.Take(r)
	s := settling(c, store.PushKeep)
	s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 2)}
	w.Settle(s)
	must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	got := r.Follows("a")
	eq(t, "made anew", []any{got.Version, got.Cursor, got.AttemptNo, got.Attempts, len(r.Log("a"))}, []any{int64(1), at(1, 0), int64(0), 0, 0})
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	h.Advance(pushLease - time.Second)
	eq(t, "claimed a moment before the end", len(h.Pusher(t).ClaimOf(r)), 0)
	h.Advance(time.Second + time.Microsecond)
	next := h.Pusher(t).Take(r)
	eq(t, "lost by the incarnation before", []int{next.Lost, len(r.Log("a"))}, []int{0, 0})
	if next.Token <= c.Token {
		t.Fatalf("token %d after %d", next.Token, c.Token)
	}
}

func pushIncarnations(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	again := func() {
		t.Helper()
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
		r.Follows("a")
		eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	}
	again()
	out := w.SettleAll(settling(c, store.PushRelease))[0]
	if out.Err == nil {
		t.Fatal("a settlement of the first incarnation went well")
	}
	c = h.Pusher(t).Take(r) // handed in
	for range 3 {
		again()
	}
	h.Advance(pushLeaseEnd)
	next := h.Pusher(t).Take(r)
	eq(t, "the former token", w.Renew(c.Token).State != store.PushLeaseHeld, true)
	eq(t, "the holder", w.Renew(next.Token).State, store.PushLeaseHeld)
}

func pushToolCompletesWhileSending(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	r.Conclude(rendezvous.StatusCompleted)
	w := h.Pusher(t)
	c := w.Take(r)
	r.Puts(r.Hook("a"))
	done(t, "complete", f.CompletePush(ctx, r.PushKey("a"), 0, 3))
	r.NoPush("a")
	r.Follows("a")
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	eq(t, "renewed", w.Renew(c.Token).State, store.PushLeaseRevoked)
	h.Advance(pushLeaseEnd)
	h.Pusher(t).Take(r)
}

func pushPartlyAfterGrace(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.whole("a", "1")
	r.Puts(p)
	grace := time.Hour
	made := must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Grace: &grace, Op: "o"}))(t, "rotate")
	h.Advance(grace + time.Second)
	p.Fields = []string{"url"}
	before := r.Push("a")
	r.Puts(p)
	r.Unchanged("after an update to the same", before)
	p.URL = "https://new.example.org/"
	got := r.Puts(p)
	eq(t, "the url", got.URL, p.URL)
	keys := r.Push("a").Signing
	eq(t, "keys", []any{len(keys), keys[0].ID}, []any{1, made.Key.ID})
}

func pushRotates(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.whole("a", "1")
	r.Puts(p)
	old := r.Push("a").Signing
	grace := time.Hour
	before := h.Now(t)
	given := must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Key: signingKey("new"), Grace: &grace, Op: "o1"}))(t, "rotate")
	eq(t, "a given key is not told", []any{given.Key.Key.Set(), given.Key.ID != "", given.Key.Algorithm, given.Again, given.Version}, []any{false, true, "v1", false, int64(2)})
	keys := r.Push("a").Signing
	eq(t, "keys", []string{keys[0].Key.Reveal(), keys[1].Key.Reveal(), keys[2].Key.Reveal()}, []string{signingKey("new").Reveal(), old[0].Key.Reveal(), old[1].Key.Reveal()})
	eq(t, "the new one's end", keys[0].ExpiresAt.IsZero(), true)
	for _, k := range keys[1:] {
		if k.ExpiresAt.Before(before.Add(grace)) || k.ExpiresAt.After(h.Now(t).Add(grace+time.Microsecond)) {
			t.Fatalf("an older key ends at %s", k.ExpiresAt)
		}
	}
	zero := time.Duration(0)
	made := must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Algorithm: "v1a", Grace: &zero, Op: "o2"}))(t, "rotate")
	eq(t, "a generated key is told", []any{made.Key.Key.Set(), made.Key.Algorithm, made.Key.Public != ""}, []any{true, "v1a", true})
	after := r.Push("a").Signing
	eq(t, "in force", after[0].Key.Reveal(), made.Key.Key.Reveal())
	for _, k := range after[1:] {
		if !k.Expired(h.Now(t)) {
			t.Fatalf("a key with no grace goes on until %s", k.ExpiresAt)
		}
	}
	def := must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Op: "o3"}))(t, "rotate")
	eq(t, "the default", []any{def.Key.Algorithm, def.Key.Key.Set()}, []any{"v1", true})
	i := slices.IndexFunc(r.Push("a").Signing, func(k rendezvous.SigningKey) bool { return k.ID == made.Key.ID })
	end := r.Push("a").Signing[i].ExpiresAt
	if end.Before(h.Now(t).Add(store.DefaultPushGrace-time.Minute)) || end.After(h.Now(t).Add(store.DefaultPushGrace+time.Microsecond)) {
		t.Fatalf("by default an older key ends at %s", end)
	}
	sooner := must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Op: "o4", Grace: ptr(store.MaxPushGrace)}))(t, "rotate")
	i = slices.IndexFunc(r.Push("a").Signing, func(k rendezvous.SigningKey) bool { return k.ID == made.Key.ID })
	eq(t, "a longer grace revives no key that ends sooner", []any{r.Push("a").Signing[i].ExpiresAt, sooner.Again}, []any{end, false})
	x := r.Push("a")
	eq(t, "the rest stays", []any{x.URL, x.Token.Reveal(), x.Cursor, x.State}, []any{p.URL, "token1", at(1, 0), rendezvous.PushLive})
}

func pushRotatesAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	rotate := func() store.PushRotated {
		t.Helper()
		return must(f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Op: "o1"}))(t, "rotate")
	}
	first := rotate()
	row := r.Push("a")
	h.Advance(9 * time.Minute)
	again := rotate()
	eq(t, "the key again", []any{again.Key.Key.Reveal(), again.Key.ID, again.Again, again.Version}, []any{first.Key.Key.Reveal(), first.Key.ID, true, first.Version})
	h.Advance(2 * time.Minute)
	late := rotate()
	eq(t, "later it is not shown", []any{late.Key.Key.Set(), late.Key.ID, late.Again}, []any{false, first.Key.ID, true})
	r.Unchanged("after repeats", row)
	eq(t, "keys", len(row.Signing), 1)
}

func pushSixthKey(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	grace := time.Hour
	rotate := func(op string) error {
		_, err := f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Grace: &grace, Op: op})
		return err
	}
	for _, op := range []string{"1", "2", "3", "4", "5"} {
		done(t, "rotate", rotate(op))
	}
	before := r.Push("a")
	code(t, "a sixth", rotate("6"), rendezvous.CodeTooLarge, "limit", rendezvous.MaxSigningKeys, "value", rendezvous.MaxSigningKeys+1)
	r.Unchanged("after a sixth", before)
	h.Advance(grace + time.Second)
	done(t, "with room", rotate("7"))
	live := 0
	for _, k := range r.Push("a").Signing {
		if !k.Expired(h.Now(t)) {
			live++
		}
	}
	eq(t, "unexpired", live, 2)
}

func pushWrongKeys(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.whole("a", "1")
	r.Puts(p)
	before := r.Push("a")
	for _, text := range []string{"whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", "whsec_whsec_" + base64Of("0123456789012345678901234567890")} {
		_, err := f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Key: secret(text), Op: ID("op")})
		code(t, "no key", err, rendezvous.CodeInvalid)
		if strings.Contains(sayAll(err), text) {
			t.Errorf("%v tells the key", err)
		}
	}
	_, err := f.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Key: p.Signing[0].Key, Op: ID("op")})
	if err == nil {
		t.Error("a key that is there already was put before itself")
	}
	r.Unchanged("after refused keys", before)
}
