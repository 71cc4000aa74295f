package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/wire"
)

// lease is the right to drive a workflow's current run: its epoch, and until when this process may believe in it. Who really holds it only the store
// knows (I16); the process's own count errs to the early side, since it begins when the request was sent.
type lease struct {
	client   *Client
	workflow string
	owner    string
	epoch    int64
	ttl      time.Duration
	cancel   context.CancelCauseFunc // of the handler's context

	mu    sync.Mutex
	run   *Run // the current one: a continuation moves the lease to the next
	until time.Time
	gone  error
}

func (l *lease) drives(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = r
}

// lost is nil while the lease is held, as far as anybody said.
func (l *lease) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// lose ends the handler's context; from here nothing is written for the run.
func (l *lease) lose(err error) {
	l.mu.Lock()
	if l.gone == nil {
		l.gone = err
	}
	l.mu.Unlock()
	l.cancel(err)
}

func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Sub(l.client.opts.Clock.Now())
}

// keep renews at each tick until ctx ends or the lease is lost.
func (l *lease) keep(ctx context.Context, tick clock.Ticker) {
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			if l.renew(ctx) != nil && l.lost() != nil {
				return
			}
		}
	}
}

// freshen renews a lease with less than a third left: an effect is not begun that a deposed driver would end.
func (l *lease) freshen(ctx context.Context) error {
	if l.left() >= l.ttl/3 {
		return l.lost()
	}
	return l.renew(ctx)
}

// renew extends the lease. A plane that does not answer is asked again until the lease runs out.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	run := l.run
	l.mu.Unlock()
	sent := l.client.opts.Clock.Now()
	bounded, cancel := clock.WithTimeout(ctx, l.client.opts.Clock, max(l.left(), 0))
	defer cancel()
	got, err := l.client.RenewLease(bounded, wire.AcquireLease{RunID: run.id, Owner: l.owner, Epoch: l.epoch, TTLMS: new(l.ttl.Milliseconds())})
	if err != nil {
		return l.notRenewed(ctx, run, err)
	}
	l.mu.Lock()
	l.until = sent.Add(l.ttl)
	current := l.run == run
	l.mu.Unlock()
	if current {
		run.ask(got.Requests)
	}
	return nil
}

func (l *lease) notRenewed(ctx context.Context, run *Run, err error) error {
	l.mu.Lock()
	moved := l.run != run
	l.mu.Unlock()
	switch {
	case ctx.Err() != nil, moved, run.ending() && errors.Is(err, rendezvous.ErrSealed):
		return err // the driver ends the run or goes on with the next: a later tick renews for that one
	case errors.Is(err, rendezvous.ErrFenced), errors.Is(err, rendezvous.ErrSealed), errors.Is(err, rendezvous.ErrNotFound):
		l.lose(err)
	case l.left() <= 0:
		l.lose(errRanOut)
	}
	return err
}
