package push

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Waits between two tries of a settlement that the store did not answer.
const (
	resettleFirst = 50 * time.Millisecond
	resettleMost  = time.Second
)

// settleSize is a settlement's share of a batch's bytes.
func settleSize(s store.PushSettlement) int {
	n := 512 + len(s.Error)
	for _, a := range s.Attempts {
		n += 512 + len(a.Response) + len(a.Error)
	}
	return n
}

// settle is the group commit of settlements. It tries until the store answers, or ctx ends: what was accepted is a fact, and the same settlements again count
// once. Of a batch that the store refuses as a whole each is made alone.
func (w *Worker) settle(ctx context.Context, items []store.PushSettlement) ([]store.PushSettled, error) {
	for wait := resettleFirst; ; wait = min(2*wait, resettleMost) {
		start := w.deps.Clock.Now()
		out, err := w.settleOnce(ctx, items)
		if err == nil {
			w.metrics.settled(ctx, len(items), w.deps.Clock.Now().Sub(start))
			return out, nil
		}
		if refused(err) {
			return w.alone(ctx, items, err), nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		w.deps.Log.WarnContext(ctx, "settlements not answered; they are made again", "items", len(items), "code", rendezvous.CodeOf(err), "error", err)
		if clock.Sleep(ctx, w.deps.Clock, wait) != nil {
			return nil, err
		}
	}
}

func (w *Worker) settleOnce(ctx context.Context, items []store.PushSettlement) ([]store.PushSettled, error) {
	ctx, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	defer cancel()
	return w.store.SettlePushes(ctx, items)
}

// alone settles one by one what was refused together.
func (w *Worker) alone(ctx context.Context, items []store.PushSettlement, err error) []store.PushSettled {
	if len(items) == 1 {
		return []store.PushSettled{{Err: err}}
	}
	out := make([]store.PushSettled, len(items))
	for i := range items {
		got, err := w.settle(ctx, items[i:i+1])
		if err != nil {
			out[i].Err = err
			continue
		}
		out[i] = got[0]
	}
	return out
}

// refused reports whether trying the same again cannot help.
func refused(err error) bool {
	switch rendezvous.CodeOf(err) {
	case rendezvous.CodeInvalid, rendezvous.CodeTooLarge, rendezvous.CodeCorrupt, rendezvous.CodeNotFound, rendezvous.CodeConflict, rendezvous.CodeFenced:
		return true
	}
	return false
}
