package push

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push/outcome"
	"github.com/rendezvous-events/rendezvous/store"
)

// loop claims what is due, until ctx ends: at once while more is due than was claimed and there are places, else when something is due, and by the poll.
func (w *Worker) loop(ctx context.Context) {
	for ctx.Err() == nil {
		w.pass(ctx)
		w.summarize()
		w.sleep(ctx)
	}
}

// pass claims once for each namespace; whose comes first changes, so that neither takes all places for ever.
func (w *Worker) pass(ctx context.Context) {
	w.mu.Lock()
	w.next, w.behind = time.Time{}, backlog{}
	w.turned++
	namespaces := w.looking(w.turned)
	w.mu.Unlock()
	unserved := -1
	for i, n := range namespaces {
		share := 1 // of those left
		if i < len(namespaces)-1 {
			share = 2
		}
		got, err := w.claim(ctx, n, nil, share)
		if err != nil {
			w.dueAt(w.deps.Clock.Now().Add(time.Second))
			continue
		}
		unserved = got.Unserved
	}
	if unserved >= 0 && len(w.cfg.Namespaces) == 1 {
		w.counts.unserved(unserved)
	}
}

// looking are the namespaces of a pass, in its order. Where no destination is configured, what is left of those that are gone is looked for once a poll.
func (w *Worker) looking(turned int) (list []rendezvous.PushNamespace) {
	now := w.deps.Clock.Now()
	for i := range w.cfg.Namespaces {
		n := w.cfg.Namespaces[(i+turned)%len(w.cfg.Namespaces)]
		if n == rendezvous.PushOperator && len(w.cfg.Namespaces) > 1 && !w.deps.Destinations.Any() {
			if now.Before(w.remnants) {
				continue
			}
			w.remnants = now.Add(w.cfg.Poll / 2)
		}
		list = append(list, n)
	}
	return list
}

// sleep waits for the next pass. What woke the loop while it was not asleep stands in next and behind.
func (w *Worker) sleep(ctx context.Context) {
	select {
	case <-w.wake:
	default:
	}
	w.mu.Lock()
	wait := w.cfg.Poll - time.Duration(w.deps.Random()*float64(w.cfg.Poll)/4)
	if !w.next.IsZero() {
		wait = min(wait, w.next.Sub(w.deps.Clock.Now()))
	}
	if w.behind.hurry && w.places.free() > 0 {
		wait = 0
	}
	w.mu.Unlock()
	if wait <= 0 {
		return
	}
	t := w.deps.Clock.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C():
	case <-w.wake:
	case <-ctx.Done():
	}
}

// dueAt notes that something is due at an instant of the clock.
func (w *Worker) dueAt(at time.Time) {
	w.mu.Lock()
	earlier := w.next.IsZero() || at.Before(w.next)
	if earlier {
		w.next = at
	}
	w.mu.Unlock()
	if earlier {
		signal(w.wake)
	}
}

// backlog is what is due and was not claimed.
type backlog struct {
	any   bool            // a place of any gate may be for it
	gates map[string]bool // a place of these may
	hurry bool            // there is one
}

// more notes that more is due than was claimed, for want of places of some gates, or of any. It is claimed at once where hurry says that there are such, else when a
// turn leaves one (see leave).
func (w *Worker) more(gates []string, hurry bool) {
	w.mu.Lock()
	b := &w.behind
	b.any, b.hurry = b.any || len(gates) == 0, b.hurry || hurry
	for _, gate := range gates {
		if b.gates == nil {
			b.gates = map[string]bool{}
		}
		b.gates[gate] = true
	}
	w.mu.Unlock()
	if hurry && w.places.free() > 0 {
		signal(w.wake)
	}
}

// claim takes due rows of a namespace, as many as there are places, or their half or third, and begins their turns. A claim whose reply was lost is asked for
// again by its request.
func (w *Worker) claim(ctx context.Context, namespace rendezvous.PushNamespace, only []store.PushRun, share int) (store.ClaimedPushes, error) {
	w.claiming.Lock()
	defer w.claiming.Unlock()
	free := w.places.free()
	if w.closed || w.draining() {
		return store.ClaimedPushes{}, nil
	}
	if free == 0 { // nobody is asked, so nobody fails to answer
		w.looked.Store(w.deps.Clock.Now().UnixMilli())
		w.more(nil, true)
		return store.ClaimedPushes{}, nil
	}
	request, repeated := w.requests[namespace]
	if !repeated {
		request = rand.Text()
		w.requests[namespace] = request
	}
	perGate := min(store.DefaultPushPerGate, w.cfg.GateInFlight)
	c := store.ClaimPush{
		Limit: (free + share - 1) / share, Namespace: namespace, Owner: w.cfg.Owner, Request: request, Lease: w.cfg.Lease, Only: only, LostLimit: w.cfg.LostLimit,
		PerGate: perGate, Room: w.places.room(perGate),
	}
	asked := w.deps.Clock.Now()
	got, err := w.ask(w.life, c)
	if err != nil {
		if ctx.Err() == nil {
			w.deps.Log.WarnContext(ctx, "due push registrations not claimed; trying again", "code", rendezvous.CodeOf(err), "error", err)
		}
		return got, err
	}
	delete(w.requests, namespace)
	w.looked.Store(w.deps.Clock.Now().UnixMilli())
	begun := w.claimed(got, anchor{store: got.Now, local: asked})
	if got.Saturated {
		w.counts.add(Report{Saturated: 1})
		w.metrics.saturated.Add(w.life, 1)
		w.left(got, begun)
	}
	if repeated && len(got.Pushes) > 0 { // such an answer does not say what else is due
		w.more(nil, true)
	}
	return got, nil
}

// left notes what a claim left due.
func (w *Worker) left(got store.ClaimedPushes, begun int) {
	w.more(got.Crowded, false) // first: whose turn ends from here on sees it
	open := len(got.Crowded) == 0 || w.places.open(got.Crowded)
	nothing := len(got.Pushes)+len(got.Parked) == 0
	switch {
	case open && (begun > 0 || len(got.Parked) > 0), open && nothing && len(got.Crowded) > 0: // and if all was put off, it is due later
		w.more(got.Crowded, true)
	case nothing && len(got.Crowded) == 0: // others have the rows locked, or there are many tenants in front whose gates are full
		w.dueAt(w.deps.Clock.Now().Add(time.Second))
	}
}

func (w *Worker) ask(ctx context.Context, c store.ClaimPush) (store.ClaimedPushes, error) {
	ctx, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	defer cancel()
	return w.store.ClaimPushes(ctx, c)
}

// claimed begins the turns of a claim, and answers how many. Rows whose tenant has its half while others wait go back uncharged and hold no place, as those of a full
// gate would if they came (PU-57).
func (w *Worker) claimed(got store.ClaimedPushes, a anchor) (begun int) {
	w.counts.add(Report{Registrations: len(got.Pushes), Parked: len(got.Parked)})
	w.metrics.claims.Record(w.life, int64(len(got.Pushes)))
	w.metrics.lost.Add(w.life, int64(got.Lost))
	for _, p := range got.Parked {
		w.metrics.parkedFor(w.life, rendezvous.ParkWorkerLost)
		w.deps.Log.InfoContext(w.life, "push registration parked", "tenant", p.Tenant, "run_id", p.RunID, "id", p.ID, "reason", rendezvous.ParkWorkerLost)
	}
	if !got.NextDue.IsZero() {
		w.dueAt(a.by(got.NextDue))
	}
	others := slices.ContainsFunc(got.Pushes, func(p store.ClaimedPush) bool { return p.Tenant != got.Pushes[0].Tenant })
	for _, row := range got.Pushes {
		if !w.places.admit(row.Gate, row.Tenant, others) {
			w.putOff(row, a)
			continue
		}
		begun++
		t := w.begin(row, a)
		w.turns.Go(func() {
			defer w.leave(row)
			t.run()
		})
	}
	return begun
}

// leave gives a turn's place back.
func (w *Worker) leave(row store.ClaimedPush) {
	w.places.leave(row.Gate, row.Tenant)
	w.mu.Lock()
	again := w.behind.any || w.behind.hurry || w.behind.gates[row.Gate]
	w.behind.hurry = w.behind.hurry || again
	w.mu.Unlock()
	if again {
		signal(w.wake)
	}
}

// putOff gives a claimed row back for a while.
func (w *Worker) putOff(row store.ClaimedPush, a anchor) {
	d := outcome.Decide(outcome.State{}, outcome.Result{Class: rendezvous.ClassOwn, At: a.at(w.deps.Clock.Now())}, outcome.Limits{}, w.deps.Random)
	s := store.PushSettlement{
		PushItem: store.PushItem{Tenant: row.Tenant, PushKey: row.Key()}, Token: row.Token, Name: rand.Text(), Do: store.PushRelease, Why: store.ReleaseGate, At: d.Next,
	}
	w.counts.add(Report{Deferred: 1})
	w.metrics.deferredFor(w.life, store.ReleaseGate)
	w.turns.Go(func() {
		if _, err := w.settles.Do(w.life, s); err == nil {
			w.dueAt(a.by(d.Next))
		}
	})
}

// noticed claims the rows of the runs that notices name. They are acknowledged once the claim answered, whatever it said: the rows are the truth.
func (w *Worker) noticed(ctx context.Context, batch []messaging.PushNotice) []messaging.Outcome {
	runs := make([]store.PushRun, 0, len(batch))
	seen := make(map[store.PushRun]bool, len(batch))
	for _, n := range batch {
		run := store.PushRun{Tenant: n.Tenant, RunID: n.RunID}
		if !seen[run] {
			seen[run] = true
			runs = append(runs, run)
		}
	}
	out := make([]messaging.Outcome, len(batch))
	for i := range out {
		out[i] = messaging.Ack()
	}
	for _, n := range w.cfg.Namespaces {
		if n == rendezvous.PushOperator && !w.deps.Destinations.Any() {
			continue // what is left of destinations that are gone is found by the poll
		}
		if w.draining() {
			return every(out, messaging.Release())
		}
		if _, err := w.claim(ctx, n, runs, 1); err != nil {
			return every(out, messaging.Retry(0))
		}
	}
	return out
}

func every(out []messaging.Outcome, o messaging.Outcome) []messaging.Outcome {
	for i := range out {
		out[i] = o
	}
	return out
}
