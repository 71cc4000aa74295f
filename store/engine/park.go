package engine

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// maxRetryIn is the longest a delivery may be put off at once.
const maxRetryIn = 10 * time.Minute

func checkRetryIn(d time.Duration) error {
	if d < 0 || d > maxRetryIn {
		return rendezvous.InvalidField("retry_in", "%s is outside 0s..%s", d, maxRetryIn).With("limit", maxRetryIn.String()).With("value", d.String())
	}
	return nil
}

// ParkWait implements [store.Redeliverer].
func (e *Engine) ParkWait(ctx context.Context, items []store.ParkItem, at time.Time) ([]store.ParkResult, error) {
	if err := checkItems(len(items), at); err != nil {
		return nil, err
	}
	return inParts(items, func(part []store.ParkItem) (out []store.ParkResult, err error) {
		_, err = e.update(ctx, "park_wait", at, func(ctx context.Context, u *unit) (err error) {
			out, err = u.parkWaits(ctx, part)
			return err
		})
		return out, err
	}, func(err error) store.ParkResult { return store.ParkResult{Err: err} })
}

func checkPark(item store.ParkItem) error {
	if err := checkWaitRef(item.Tenant, item.WaitID); err != nil {
		return err
	}
	if item.Cause != store.ParkLeased && item.Cause != store.ParkFailed {
		return rendezvous.InvalidField("cause", "%q is none of leased, failed", item.Cause)
	}
	if err := checkRetryIn(item.RetryIn); err != nil {
		return err
	}
	return rendezvous.CheckReason("error", item.Error)
}

func checkWaitRef(tenant string, id rendezvous.WaitID) error {
	if err := rendezvous.CheckTenant(tenant); err != nil {
		return err
	}
	return checkWaitID(id)
}

// lockRuns locks the workflows of those runs; once in a unit. Runs that do not exist are absent; a run found concluded is as it is under the lock.
func (u *unit) lockRuns(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	runs, err := u.tx.Runs(ctx, keys)
	if err != nil {
		return nil, err
	}
	flows := make([]backend.WorkflowKey, 0, len(runs))
	for _, r := range runs {
		flows = append(flows, backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID})
	}
	if err := u.lock(ctx, distinct(flows)); err != nil {
		return nil, err
	}
	var ended []backend.RunKey
	for k, r := range runs {
		if f := u.flowOf(r); f != nil && f.Corrupt == nil && !current(f, r) && !r.Status.Terminal() {
			ended = append(ended, k) // between the read of its row and the lock
		}
	}
	if len(ended) == 0 {
		return runs, nil
	}
	again, err := u.tx.Runs(ctx, ended)
	for k, r := range again {
		runs[k] = r
	}
	return runs, err
}

// flowOf is the locked workflow of a run, nil for no run and where there is none.
func (u *unit) flowOf(run *backend.Run) *flow {
	if run == nil {
		return nil
	}
	return u.flows[backend.WorkflowKey{Tenant: run.Tenant, ID: run.WorkflowID}]
}

// distinct is keys, each once, in their order.
func distinct[K comparable](keys []K) []K {
	seen := make(map[K]struct{}, len(keys))
	out := make([]K, 0, len(keys))
	for _, k := range keys {
		if _, twice := seen[k]; !twice {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}
	return out
}

// parking is one try of ParkWait.
type parking struct {
	u     *unit
	runs  map[backend.RunKey]*backend.Run
	waits map[backend.WaitKey]*backend.Wait
	// Of waits without a row: how they stand in the history, and the event whose claim names them.
	stand  map[backend.WaitKey]standing
	claims map[backend.WaitKey]*backend.Event
}

func (u *unit) parkWaits(ctx context.Context, items []store.ParkItem) ([]store.ParkResult, error) {
	out := make([]store.ParkResult, len(items))
	var keys []backend.WaitKey
	var runs []backend.RunKey
	for i, item := range items {
		if out[i].Err = checkPark(item); out[i].Err == nil {
			keys = append(keys, backend.WaitKey{Tenant: item.Tenant, RunID: item.RunID, Effect: item.Effect})
			runs = append(runs, backend.RunKey{Tenant: item.Tenant, ID: item.RunID})
		}
	}
	if len(keys) == 0 {
		return out, nil
	}
	p := parking{u: u}
	if err := p.read(ctx, distinct(keys), distinct(runs)); err != nil {
		return nil, err
	}
	for i, item := range items {
		if out[i].Err == nil {
			out[i] = p.park(item)
		}
	}
	return out, nil
}

func (p *parking) read(ctx context.Context, keys []backend.WaitKey, runs []backend.RunKey) error {
	var err error
	if p.runs, err = p.u.lockRuns(ctx, runs); err != nil {
		return err
	}
	if p.waits, err = p.u.tx.Waits(ctx, keys); err != nil {
		return err
	}
	var missing []backend.WaitKey
	for _, k := range keys {
		run := p.runs[backend.RunKey{Tenant: k.Tenant, ID: k.RunID}]
		if f := p.u.flowOf(run); p.waits[k] == nil && f != nil && current(f, run) {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if p.stand, err = p.u.standings(ctx, nil, missing...); err != nil {
		return err
	}
	if p.claims, err = p.u.tx.ClaimedEvents(ctx, missing); err != nil {
		return err
	}
	return p.restore(ctx, missing)
}

// restore makes the lost rows of waits anew, from their registration in the history, where an event stands claimed for them: with a new number, as
// parked as they were.
func (p *parking) restore(ctx context.Context, missing []backend.WaitKey) error {
	var lost []backend.WaitKey
	for _, k := range missing {
		if s, e := p.stand[k], p.claims[k]; s.opened != nil && s.closed == nil && e != nil && e.Corrupt == nil {
			lost = append(lost, k)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	numbers, err := p.u.tx.NewWaitNumbers(ctx, len(lost))
	if err != nil {
		return err
	}
	for i, k := range lost {
		f := p.u.flowOf(p.runs[backend.RunKey{Tenant: k.Tenant, ID: k.RunID}])
		w, err := registeredWait(f, p.stand[k].opened)
		if err != nil {
			return err
		}
		w.Number = numbers[i]
		e := p.claims[k]
		w.Held = &backend.HeldEvent{Number: e.Number, Source: e.Source, ID: e.ID, Claim: w.Number} // when it claimed is lost with its row
		w.ParkedAt, w.NextAttemptAt = e.ClaimedAt, p.u.now
		p.u.ch.NewWaits = append(p.u.ch.NewWaits, w)
		p.waits[k] = w
	}
	return nil
}

// registeredWait is a wait's row as its registration says, open and without a number.
func registeredWait(f *flow, opened *rendezvous.Record) (*backend.Wait, error) {
	var d rendezvous.WaitRegisteredData
	if err := rendezvous.DecodeData(*opened, &d); err != nil {
		return nil, err
	}
	return &backend.Wait{
		Tenant: f.Tenant, RunID: opened.RunID, Effect: opened.Effect, WorkflowID: f.ID, Shard: f.Shard, Attempt: max(opened.Attempt, 1),
		Type: d.Type, Keys: d.Keys, From: d.From, RegisteredAt: opened.RecordedAt, OpenSince: opened.RecordedAt,
	}, nil
}

// park puts one delivery off (EV-61..EV-63, EV-86).
func (p *parking) park(item store.ParkItem) store.ParkResult {
	key := backend.WaitKey{Tenant: item.Tenant, RunID: item.RunID, Effect: item.Effect}
	run := p.runs[backend.RunKey{Tenant: item.Tenant, ID: item.RunID}]
	f, w := p.u.flowOf(run), p.waits[key]
	switch {
	case f == nil:
		return store.ParkResult{Outcome: store.ParkedClosed}
	case f.Corrupt != nil:
		return store.ParkResult{Err: f.Corrupt}
	case !current(f, run) || p.stand[key].closed != nil:
		return store.ParkResult{Outcome: store.ParkedClosed}
	case w == nil || (w.Held == nil && w.Corrupt == nil):
		return store.ParkResult{Outcome: store.ParkedNothingHeld}
	case w.Held == nil:
		return store.ParkResult{Err: w.Corrupt}
	case item.Take != 0 && item.Take != w.Take:
		return store.ParkResult{Err: rendezvous.Errorf(rendezvous.CodeFenced,
			"take %d of wait %q of run %q is not its latest; leave the wait to whoever took it", item.Take, item.Effect, item.RunID).With("take", item.Take)}
	case item.Take == 0 || !w.TakeSettled:
		p.u.putOff(w, item)
	}
	return store.ParkResult{
		Outcome: store.ParkedParked, Attempts: w.Attempts, NextAttemptAt: w.NextAttemptAt, Quarantined: !w.QuarantinedAt.IsZero(),
	}
}

// putOff moves a parked wait's next attempt and ends the take it was tried under. A lease is nobody's fault and is not counted.
func (u *unit) putOff(w *backend.Wait, item store.ParkItem) {
	if item.Take != 0 {
		w.TakeUntil, w.TakeSettled = time.Time{}, true
	}
	if item.Cause == store.ParkFailed {
		u.countFailure(w, item.Error, item.RetryIn)
		return
	}
	w.NextAttemptAt = rendezvous.DueInstant(u.now.Add(item.RetryIn))
	u.saveWait(w)
}

// Delays of a parked wait that failed: 1 s doubling to 5 min, less up to a quarter.
const (
	firstFailure = time.Second
	lastFailure  = 5 * time.Minute
)

// failAttempt counts a failed attempt of a parked wait and puts it behind the others; at 16 it is quarantined (EV-62). The take under which it was
// tried is settled by that, so that whoever parks it with the take does not count it again.
func (u *unit) failAttempt(w *backend.Wait, cause error) {
	d := doubled(firstFailure, w.Attempts, lastFailure)
	u.countFailure(w, cause.Error(), d-rand.N(d/4))
	w.TakeUntil, w.TakeSettled = time.Time{}, true
}

func (u *unit) countFailure(w *backend.Wait, cause string, retryIn time.Duration) {
	w.Attempts++
	w.LastError = clip(cause)
	w.NextAttemptAt = rendezvous.DueInstant(u.now.Add(retryIn))
	if w.Attempts >= rendezvous.QuarantineAfter && w.QuarantinedAt.IsZero() {
		w.QuarantinedAt = u.now
	}
	u.saveWait(w)
}

// clip makes free text fit to be kept: it may come from an error of anything, and not every store takes invalid UTF-8 or NUL. It is cut between characters.
func clip(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	for i := range s {
		if i > rendezvous.MaxReason-4 && len(s) > rendezvous.MaxReason {
			return s[:i]
		}
	}
	return s
}
