package storetest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// What the cases of push registrations say most.

// pushLease is how long the cases' send leases last, and a moment more ends them.
const (
	pushLease    = store.DefaultPushLease
	pushLeaseEnd = pushLease + time.Microsecond
)

// Hook makes a registration of the run on a host of its own, which takes all records.
func (r *Flow) Hook(id string) store.PutPush {
	return store.PutPush{Registration: rendezvous.Registration{
		RunID: r.ID, ID: id, URL: "https://" + ID("host") + ".example.org/hook", Events: []string{rendezvous.AllEvents},
	}}
}

// Puts puts a registration.
func (r *Flow) Puts(p store.PutPush) store.PushPut {
	r.F.T.Helper()
	return must(r.F.PutPush(ctx, p, now))(r.F.T, "put "+p.ID)
}

// Follows registers from the run's first record on: there is something to send at once.
func (r *Flow) Follows(id string) *store.Push {
	r.F.T.Helper()
	p := r.Hook(id)
	p.NextSeq = 1
	return &[]store.Push{r.Puts(p).Push}[0]
}

// Rests registers from the next record on: there is nothing to send yet.
func (r *Flow) Rests(id string) *store.Push {
	r.F.T.Helper()
	got := r.Puts(r.Hook(id)).Push
	eq(r.F.T, "state of "+id, got.State, rendezvous.PushIdle)
	return &got
}

// Parks registers from the run's first record on, and an operator parks it.
func (r *Flow) Parks(id string) *store.Push {
	r.F.T.Helper()
	r.Follows(id)
	r.Stop(id, rendezvous.ParkByOperator)
	return r.Push(id)
}

// Stop is an operator's park.
func (r *Flow) Stop(id string, reason rendezvous.ParkReason) {
	r.F.T.Helper()
	done(r.F.T, "park "+id, r.F.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey(id), Reason: reason, Error: "parked for " + string(reason)}))
}

// PushKey names a registration of the run.
func (r *Flow) PushKey(id string) store.PushKey { return store.PushKey{RunID: r.ID, ID: id} }

// Push is a registration of the run, which has to be there.
func (r *Flow) Push(id string) *store.Push {
	r.F.T.Helper()
	p := must(r.F.GetPush(ctx, r.PushKey(id)))(r.F.T, "get "+id)
	if p == nil {
		r.F.T.Fatalf("registration %s of %s is gone", id, r.ID)
	}
	return p
}

// NoPush fails the test unless the run has no such registration.
func (r *Flow) NoPush(id string) {
	r.F.T.Helper()
	eq(r.F.T, "registration "+id, must(r.F.GetPush(ctx, r.PushKey(id)))(r.F.T, "get "+id), nil)
	for _, p := range must(r.F.ListPush(ctx, r.ID))(r.F.T, "list registrations") {
		if p.ID == id {
			r.F.T.Fatalf("registration %s is gone and listed", id)
		}
	}
}

// Unchanged fails the test unless the row is as it was.
func (r *Flow) Unchanged(what string, before *store.Push) {
	r.F.T.Helper()
	eq(r.F.T, before.ID+" "+what, r.Push(before.ID), before)
}

// WantCursor fails the test unless the registration stands there.
func (r *Flow) WantCursor(id string, seq int64, index int) *store.Push {
	r.F.T.Helper()
	p := r.Push(id)
	eq(r.F.T, "cursor of "+id, p.Cursor, at(seq, index))
	return p
}

// at is a cursor.
func at(seq int64, index int) rendezvous.Cursor {
	return rendezvous.Cursor{NextSeq: seq, NextIndex: index}
}

// Advances moves a registration's cursor to a record.
func (r *Flow) Advances(id string, token, seq int64) store.PushAdvanced {
	r.F.T.Helper()
	return must(r.F.AdvancePush(ctx, r.PushKey(id), token, at(seq, 0)))(r.F.T, "advance "+id)
}

// Retries charges a failure.
func (r *Flow) Retries(id string, token int64, next time.Time) {
	r.F.T.Helper()
	done(r.F.T, "retry "+id, r.F.RetryPush(ctx, r.PushKey(id), token, next, "503"))
}

// Log is the whole attempt log of a registration, newest first.
func (r *Flow) Log(id string) []rendezvous.PushAttempt {
	r.F.T.Helper()
	var all []rendezvous.PushAttempt
	for before := int64(0); ; {
		page := must(r.F.PushAttempts(ctx, r.PushKey(id), 3, before))(r.F.T, "read the log of "+id)
		if all = append(all, page.Attempts...); len(page.Attempts) > 3 {
			r.F.T.Fatalf("a page of %d attempts", len(page.Attempts))
		}
		if before = page.Before; before == 0 {
			return all
		}
	}
}

// pushNames are registrations as run/id, in their order.
func pushNames(all []store.Push) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.RunID+"/"+p.ID)
	}
	return out
}

// Due are the tenant's due registrations at an instant.
func (f *Fix) Due(at time.Time) []string {
	f.T.Helper()
	return pushNames(must(f.DuePush(ctx, at, store.MaxPushClaim))(f.T, "list what is due"))
}

// IsDue reports whether the registration is due at an instant.
func (r *Flow) IsDue(id string, at time.Time) bool {
	r.F.T.Helper()
	return slices.Contains(r.F.Due(at), r.ID+"/"+id)
}

// WantDue fails the test unless the registration is due at an instant, as want says.
func (r *Flow) WantDue(what, id string, at time.Time, want bool) {
	r.F.T.Helper()
	eq(r.F.T, id+" is due "+what, r.IsDue(id, at), want)
}

// parkedPushes are the parked registrations that pass the filter, in pages of limit.
func (f *Fix) parkedPushes(filter store.PushParkedFilter, limit int) []store.Push {
	f.T.Helper()
	var all []store.Push
	for cursor := ""; ; {
		page := must(f.ParkedPushes(ctx, filter, limit, cursor))(f.T, "list parked registrations")
		if limit > 0 && len(page.Pushes) > limit {
			f.T.Fatalf("a page of %d registrations", len(page.Pushes))
		}
		all = append(all, page.Pushes...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// Pusher is a push-worker.
type Pusher struct {
	T         testing.TB
	H         *Harness
	Name      string
	Namespace rendezvous.PushNamespace
}

// Pusher is a worker that posts for callers, of an incarnation of its own.
func (h *Harness) Pusher(t testing.TB) *Pusher {
	t.Helper()
	return &Pusher{T: t, H: h, Name: ID("pod") + "/1", Namespace: rendezvous.PushCaller}
}

// ask makes a claim's request.
func (w *Pusher) ask(limit int) store.ClaimPush {
	return store.ClaimPush{Limit: limit, Namespace: w.Namespace, Owner: w.Name, Request: ID("request")}
}

// Ask claims.
func (w *Pusher) Ask(c store.ClaimPush) store.ClaimedPushes {
	w.T.Helper()
	return must(w.H.Store.ClaimPushes(ctx, c))(w.T, "claim registrations")
}

// Claim claims what is due.
func (w *Pusher) Claim(limit int) store.ClaimedPushes {
	w.T.Helper()
	return w.Ask(w.ask(limit))
}

// ClaimOf claims what is due of runs, and nothing else.
func (w *Pusher) ClaimOf(runs ...*Flow) []store.ClaimedPush {
	w.T.Helper()
	c := w.ask(0)
	for _, r := range runs {
		c.Only = append(c.Only, store.PushRun{Tenant: r.F.Name(), RunID: r.ID})
	}
	return w.Ask(c).Pushes
}

// Take claims the only registration of the run that is due.
func (w *Pusher) Take(r *Flow) store.ClaimedPush {
	w.T.Helper()
	got := w.ClaimOf(r)
	if len(got) != 1 {
		w.T.Fatalf("claimed %d registrations of %s, want 1: %v", len(got), r.ID, claimed(got))
	}
	return got[0]
}

// claimed are claimed registrations as tenant/run/id, in their order.
func claimed(all []store.ClaimedPush) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.Tenant+"/"+p.RunID+"/"+p.ID)
	}
	return out
}

// tokens are the tokens of claimed registrations, in their order.
func tokens(all []store.ClaimedPush) []int64 {
	var out []int64
	for _, p := range all {
		out = append(out, p.Token)
	}
	return out
}

// settling makes a settlement of a claimed registration.
func settling(c store.ClaimedPush, do store.PushSettle) store.PushSettlement {
	s := store.PushSettlement{PushItem: store.PushItem{Tenant: c.Tenant, PushKey: c.Key()}, Token: c.Token, Name: ID("settlement"), Do: do}
	switch do {
	case store.PushRelease:
		s.Why = store.ReleasePage
	case store.PushPark:
		s.Reason, s.Error = rendezvous.ParkExhausted, "503"
	case store.PushRetry:
		s.Error = "503"
	}
	return s
}

// resting makes a settlement that found nothing more to send at a head.
func resting(c store.ClaimedPush, head int64) store.PushSettlement {
	s := settling(c, store.PushRelease)
	s.Advance, s.Why, s.Head = ptr(at(head+1, 0)), store.ReleaseRest, head
	return s
}

// SettleAll settles items at once.
func (w *Pusher) SettleAll(items ...store.PushSettlement) []store.PushSettled {
	w.T.Helper()
	out := must(w.H.Store.SettlePushes(ctx, items))(w.T, "settle")
	eq(w.T, "outcomes of a settlement", len(out), len(items))
	return out
}

// Settle settles one item, which has to go well.
func (w *Pusher) Settle(s store.PushSettlement) store.PushSettled {
	w.T.Helper()
	out := w.SettleAll(s)[0]
	done(w.T, "settle "+string(s.Do), out.Err)
	return out
}

// Renew asks for more time for one token.
func (w *Pusher) Renew(token int64) store.PushLease {
	w.T.Helper()
	out := must(w.H.Store.RenewPushes(ctx, []int64{token}, pushLease))(w.T, "renew")
	eq(w.T, "outcomes of a renewal", len(out), 1)
	eq(w.T, "token of a renewal", out[0].Token, token)
	return out[0]
}

// attempt makes an attempt at a message.
func (h *Harness) attempt(t testing.TB, class rendezvous.PushClass, seq int64) rendezvous.PushAttempt {
	t.Helper()
	status := map[rendezvous.PushClass]int{rendezvous.ClassAccepted: 204, rendezvous.ClassRejected: 400, rendezvous.ClassFailed: 500, rendezvous.ClassGone: 410}[class]
	return rendezvous.PushAttempt{Seq: seq, At: h.Now(t), Class: class, Status: status, Worker: "w"}
}

// pushed is the PUSH notice for the run among notices; two fail the test.
func (r *Flow) pushed(n store.Notices) *store.PushRef {
	r.F.T.Helper()
	var found *store.PushRef
	for _, p := range n.Push {
		if p.Tenant != r.F.Name() || p.RunID != r.ID {
			continue
		}
		if found != nil {
			r.F.T.Fatalf("two PUSH notices for %s: %+v", r.ID, n.Push)
		}
		found = &p
	}
	return found
}

// wantPush fails the test unless exactly one PUSH notice names the run, at the workflow's head.
func (r *Flow) wantPush(what string, n store.Notices) {
	r.F.T.Helper()
	want := &store.PushRef{Tenant: r.F.Name(), WorkflowRef: store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.ID}, Head: r.Head()}
	eq(r.F.T, "PUSH notice "+what, r.pushed(n), want)
}

// byBytes orders registrations as due order does among equal instants.
func byBytes(a, b store.Push) int {
	return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.RunID, b.RunID), strings.Compare(a.ID, b.ID))
}

// secret is a secret's text as registrations hold it.
func secret(text string) rendezvous.Secret { return rendezvous.NewSecret(text) }

// sayAll is how values look wherever somebody prints them.
func sayAll(values ...any) string {
	var all strings.Builder
	for _, v := range values {
		fmt.Fprintf(&all, "%v %+v %#v %s %q\n", v, v, v, v, v)
		if raw, err := json.Marshal(v); err == nil {
			all.Write(raw)
		}
		var e *rendezvous.Error
		if err, is := v.(error); is && errors.As(err, &e) {
			fmt.Fprintln(&all, e.Details)
		}
	}
	return all.String()
}

// tells fails the test unless one of an error's details has that value.
func tells(t testing.TB, what string, err error, want any) {
	t.Helper()
	var e *rendezvous.Error
	if errors.As(err, &e) {
		for _, v := range e.Details {
			if number(v) == number(want) {
				return
			}
		}
		t.Fatalf("%s: %v is not told by %v %v", what, want, err, e.Details)
	}
	t.Fatalf("%s: %v has no details", what, err)
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// authorityPEM is a certificate of that name.
func authorityPEM(t testing.TB, name string) string {
	t.Helper()
	certificate, _ := certify(t, name, endOfTime)
	return certificate
}

// clientPEM is a client's certificate with its key, good until that instant.
func clientPEM(t testing.TB, until time.Time) (certificate, key string) {
	t.Helper()
	return certify(t, "client", until)
}

func certify(t testing.TB, name string, until time.Time) (certificate, key string) {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	private := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	signed := must(x509.CreateCertificate(nil, template, template, private.Public(), private))(t, "make a certificate")
	encoded := must(x509.MarshalPKCS8PrivateKey(private))(t, "encode a key")
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", signed), block("PRIVATE KEY", encoded)
}
