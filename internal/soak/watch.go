package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	lookEvery  = 250 * time.Millisecond
	lookLimit  = 5 * time.Second
	parkedMost = 4 * time.Second // until somebody sees to a parked registration
)

// row is a registration's row as it is now.
type row struct {
	hookKey
	sight
	leased bool
}

const rowsSQL = `SELECT tenant, run_id, id, incarnation, next_seq, next_index, state, reason, coalesce(parked_at, 'epoch'), lease_token <> 0
	FROM push_registrations WHERE state <> 'gone'`

// watcher looks at every row again and again, and has the parked ones seen to. That the store is away at times is what is done to it.
type watcher struct {
	hooks  *hooks
	url    string
	access map[string]*access
	conn   *pgx.Conn
	mu     sync.Mutex
	seenTo map[*hook]bool
	work   sync.WaitGroup
}

func newWatcher(s *hooks, url string, all []*access) *watcher {
	w := &watcher{hooks: s, url: url, access: map[string]*access{}, seenTo: map[*hook]bool{}}
	for _, a := range all {
		w.access[a.tenant] = a
	}
	return w
}

func (w *watcher) run(ctx context.Context) {
	defer w.leave(ctx)
	defer w.work.Wait()
	for pause(ctx, lookEvery) {
		began := time.Now()
		rows, err := w.read(ctx)
		if err != nil {
			w.leave(ctx)
			continue
		}
		for _, h := range w.hooks.see(began, rows) {
			w.seeTo(ctx, h)
		}
	}
}

func (w *watcher) leave(ctx context.Context) {
	if w.conn != nil {
		_ = w.conn.Close(context.WithoutCancel(ctx))
		w.conn = nil
	}
}

func (w *watcher) read(ctx context.Context) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if w.conn == nil {
		conn, err := pgx.Connect(ctx, w.url)
		if err != nil {
			return nil, err
		}
		w.conn = conn
	}
	rows, err := w.conn.Query(ctx, rowsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(from pgx.CollectableRow) (r row, err error) {
		err = from.Scan(&r.tenant, &r.run, &r.id, &r.incarnation, &r.cursor.NextSeq, &r.cursor.NextIndex, &r.state, &r.reason, &r.parkedAt, &r.leased)
		return r, err
	})
}

// seeTo has the receiver of a parked registration behave, after a while, and unparks it; one that is to stay parked it lets alone.
func (w *watcher) seeTo(ctx context.Context, h *hook) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.forever || w.seenTo[h] {
		return
	}
	w.seenTo[h] = true
	w.work.Go(func() {
		pause(ctx, rand.N(parkedMost))
		w.hooks.change(h, func(h *hook) { h.healed, h.unparked = true, append(h.unparked, time.Now()) })
		_, err := w.access[h.tenant].http.UnparkPush(ctx, wire.UnparkPush{PushRef: wire.PushRef{RunID: h.run, ID: h.id}, Operator: operator, Reason: "soak"})
		if err != nil && ctx.Err() == nil {
			w.hooks.ledger.violation("push.unpark of %s: %v", h.hookKey, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.seenTo, h)
	})
}
