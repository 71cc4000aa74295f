package sweep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// mostPause bounds for how long a tick that has more to do leaves the store and the broker to what comes in: as long as its last pages took.
const mostPause = 100 * time.Millisecond

// turn is a pass within one tick.
type turn struct {
	pass   *pass
	report PassReport
}

// tick works a page of every due pass, and further pages of the saturated ones in turns (S4, S7). The report is made whatever happened.
func (w *Worker) tick(ctx context.Context) {
	began := w.deps.Clock.Now()
	turns := w.dueAt(began)
	going := turns
	for n := 1; ; n++ {
		round := w.deps.Clock.Now()
		var again []*turn
		for _, t := range going {
			if ctx.Err() != nil {
				return
			}
			if w.run(ctx, t) {
				again = append(again, t)
			}
		}
		if going = again; len(going) == 0 || n >= w.cfg.Pages {
			break
		}
		if clock.Sleep(ctx, w.deps.Clock, min(w.deps.Clock.Now().Sub(round), mostPause)) != nil {
			return
		}
	}
	r := Report{At: began}
	for _, t := range turns {
		t.settle()
		w.metrics.pass(ctx, t.report)
		if t.report.Pages == 0 {
			continue // no shard is this worker's
		}
		if t.report.Saturated { // S7: it does not wait for its next turn
			if next := began.Add(jitter(w.cfg.Tick)); next.Before(t.pass.due) {
				t.pass.due = next
			}
		}
		r.Passes = append(r.Passes, t.report)
	}
	if !w.depths.due.After(began) {
		w.depths.due = began.Add(jitter(w.depths.every))
		_, r.DepthsErr = w.contained(ctx, w.depths)
	} else {
		r.DepthsErr = w.last.Load().DepthsErr
	}
	w.finish(ctx, r)
}

// dueAt are the passes that are due, in their order, and moves their next turn on.
func (w *Worker) dueAt(now time.Time) []*turn {
	var turns []*turn
	for _, s := range w.passes {
		if !s.due.After(now) {
			s.due = now.Add(jitter(s.every))
			turns = append(turns, &turn{pass: s, report: PassReport{Pass: s.name}})
		}
	}
	return turns
}

// run works one page and reports whether more is due. Nothing that happens in it reaches the other passes (S4).
func (w *Worker) run(ctx context.Context, t *turn) (more bool) {
	began := w.deps.Clock.Now()
	got, err := w.contained(ctx, t.pass)
	if t.pass.failed = err != nil; got.none {
		t.report.Saturated = false
		return false
	}
	r := &t.report
	r.Pages++
	r.Took += w.deps.Clock.Now().Sub(began)
	r.add(got.Counts)
	r.Oldest = max(r.Oldest, got.oldest)
	r.Saturated = got.saturated && err == nil
	for name, n := range got.types {
		if r.Types == nil {
			r.Types = map[string]int{}
		}
		if _, in := r.Types[name]; in || len(r.Types) < shownTypes {
			r.Types[name] += n
		}
	}
	r.Err = err
	w.metrics.page(ctx, r.Pass, r.Saturated, err)
	if err == nil {
		t.pass.last.Store(w.deps.Clock.Now().UnixMilli())
	}
	return r.Saturated
}

// shownTypes bounds the types of events that a report names.
const shownTypes = 20

// settle counts the ticks in a row that ended with more due.
func (t *turn) settle() {
	if t.pass.ticks++; !t.report.Saturated {
		t.pass.ticks = 0
	}
}

// finish completes a report and tells it: to the log where something happened, to the metrics, to whoever asked for it.
func (w *Worker) finish(ctx context.Context, r Report) {
	if ctx.Err() != nil {
		return // a tick that the end of the process cut short
	}
	if seen := w.seen.Load(); seen != nil {
		r.Depths = *seen
	}
	if r.DepthsErr != nil {
		w.deps.Log.WarnContext(ctx, "depths of the store not measured; they are looked at again", "error", r.DepthsErr)
	}
	r.Attention = w.attention(r)
	r.Took = w.deps.Clock.Now().Sub(r.At)
	for _, p := range r.Passes {
		w.tell(ctx, p)
	}
	w.last.Store(&r)
	w.metrics.ticks.Add(ctx, 1)
	if w.cfg.Reported != nil {
		w.cfg.Reported(r)
	}
}

// tell logs a pass that did something or failed.
func (w *Worker) tell(ctx context.Context, p PassReport) {
	if p.Err != nil {
		w.deps.Log.WarnContext(ctx, "pass failed; it runs again with the next tick", "pass", p.Pass, "error", p.Err)
	}
	if p.Handed == 0 {
		return
	}
	level, says := slog.LevelInfo, "pass repaired"
	switch {
	case p.Pass == Woken: // nothing was amiss: nobody drives those runs yet
		level, says = slog.LevelDebug, "notices sent again"
	case p.Pass == Late:
		level, says = slog.LevelWarn, "timers are due and nobody fires them: is a timer-worker running?"
	case p.Pass == PushUpkeep && p.Deferred > 0:
		level, says = slog.LevelWarn, "push registrations are due and nobody sends: is a push-worker running?"
	case p.Done+p.Failed+p.Released+p.Quarantined == 0:
		level, says = slog.LevelDebug, "pass deferred"
	}
	if p.Pass == Retention {
		says = "what was kept for its time is gone"
	}
	if len(p.Types) > 0 {
		says = "events became dead letters"
	}
	w.deps.Log.Log(ctx, level, says, "pass", p.Pass, "rows", p.Handed, "done", p.Done, "deferred", p.Deferred, "failed", p.Failed,
		"released", p.Released, "quarantined", p.Quarantined, "pages", p.Pages, "saturated", p.Saturated, "types", p.Types)
}

// lookAtDepths counts what is live.
func (w *Worker) lookAtDepths(ctx context.Context) (page, error) {
	d, err1 := w.store.Depths(ctx)
	now, err2 := w.store.Now(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return page{}, err
	}
	w.seen.Store(&d)
	w.seenAt.Store(&now)
	return page{}, nil
}
