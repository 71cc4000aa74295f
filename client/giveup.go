package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// contained calls f and turns its panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// trouble gives the run to another driver after an error that says nothing about the run itself. A run that fails again and again is held back longer
// each time, so that it does not spin through the executors; no slot is held meanwhile.
func (d *drive) trouble(ctx context.Context, err error) (string, error) {
	if d.lease.lost() != nil || ctx.Err() != nil {
		return d.cut(ctx)
	}
	n := d.e.countFailure(d.current.id)
	d.logTrouble(err, n)
	if n > 1 {
		d.freeSlot()
		pause := Retry{First: failFirst, Most: failMost}.pause(n-1, 0, d.e.client.opts.Jitter)
		d.hold(ctx, pause)
	}
	if d.lease.lost() != nil {
		return d.cut(ctx)
	}
	return d.release(ctx, err)
}

// hold keeps the lease for a while, or until the executor stops.
func (d *drive) hold(ctx context.Context, pause time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.e.soft, cancel)()
	_ = clock.Sleep(ctx, d.e.client.opts.Clock, pause) // however it ends, the lease is given up next
}

func (d *drive) logTrouble(err error, n int) {
	attrs := []any{"workflow_id", d.lease.workflow, "run_id", d.current.id, "type", d.current.Type(), "failures", n, "error", err}
	var p *panicked
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.stack))
	}
	d.e.opts.Log.Error("handler failed; the run is given to another driver", attrs...)
}

// cut is the end of a lease that is lost, or of a drive that is cut off. A lease somebody else holds is not touched; one that only this process gave up
// is released, so that nobody has to wait for its expiry.
func (d *drive) cut(ctx context.Context) (string, error) {
	err := d.lease.lost()
	if rendezvous.CodeOf(err) != "" && !errors.Is(err, errRanOut) {
		d.e.opts.Log.Warn("lease lost; nothing more is written", "workflow_id", d.lease.workflow, "run_id", d.current.id, "error", err)
		return "lost", err
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	d.lease.lose(err)
	return d.release(ctx, err)
}

// release gives the lease up whatever is left to do; the plane wakes the run for another driver (RN-36). Its own answer does not matter: a lease that
// could not be released runs out.
func (d *drive) release(ctx context.Context, err error) (string, error) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), d.e.client.opts.Clock, releaseTimeout)
	defer cancel()
	if _, bad := d.e.client.ReleaseLease(ctx, d.current.id, d.lease.epoch); bad != nil {
		return "unreachable", errors.Join(err, fmt.Errorf("release the lease: %w", bad))
	}
	return "released", err
}
