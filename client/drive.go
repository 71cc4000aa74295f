package client

import (
	"context"
	"errors"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// drive is one lease of a run, from its acquisition to its end.
type drive struct {
	e       *Executor
	notice  messaging.ResumeNotice
	lease   *lease
	current *Run
	slot    bool // a slot of the executor is held
	result  Driven
}

// run drives until the lease is given up or lost.
func (d *drive) run(ctx context.Context, got wire.Lease) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.lease.cancel = cancel
	d.current = d.newRun(d.notice.RunID, 0)
	d.current.ask(got.Requests)
	d.result = Driven{WorkflowID: d.lease.workflow, RunID: d.notice.RunID, Cause: d.notice.Cause}
	var renewing sync.WaitGroup
	tick := d.e.client.opts.Clock.NewTicker(d.lease.ttl / 3)
	renewing.Go(func() { d.lease.keep(ctx, tick) })
	d.result.Outcome, d.result.Err = d.work(ctx, got)
	cancel(context.Canceled)
	renewing.Wait()
	d.freeSlot()
	d.report()
}

func (d *drive) newRun(id string, before int64) *Run {
	r := &Run{client: d.e.client, lease: d.lease, id: id, journal: newJournal(before)}
	d.lease.drives(r)
	return r
}

func (d *drive) freeSlot() {
	if d.slot {
		d.slot = false
		<-d.e.slots
	}
}

func (d *drive) report() {
	d.e.opts.Log.Debug("run driven", "workflow_id", d.result.WorkflowID, "run_id", d.result.RunID, "cause", d.result.Cause, "outcome", d.result.Outcome,
		"calls", d.result.Calls, "error", d.result.Err)
	if d.e.opts.Driven != nil {
		d.e.opts.Driven(d.result)
	}
}

// work loads the run and calls the handler as often as there is news.
func (d *drive) work(ctx context.Context, got wire.Lease) (string, error) {
	if err := d.load(ctx, got); err != nil {
		return d.trouble(ctx, err)
	}
	for {
		if d.e.soft.Err() != nil {
			return d.release(ctx, nil) // the news is for another driver
		}
		err := d.pass(ctx)
		outcome, over, err := d.settle(ctx, err)
		if over {
			return outcome, err
		}
	}
}

// load reads the run's records, and records its parked answers, if there are any.
func (d *drive) load(ctx context.Context, got wire.Lease) error {
	if err := d.loadFrom(ctx, 1); err != nil {
		return err
	}
	if got.Mail > 0 {
		for more := true; more; {
			page, err := d.e.client.Collect(ctx, d.current.id, d.lease.epoch)
			if err != nil {
				return d.current.refused(err)
			}
			more = page.More
		}
		if err := d.current.sync(ctx); err != nil {
			return err
		}
	}
	if r := d.current.journal.unknown; r != nil {
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "record %d of the run is of kind %q version %d, which this build does not know; a newer one is to drive it",
			r.Seq, r.Kind, r.V).With("seq", r.Seq)
	}
	return nil
}

// loadFrom reads the history's first page. For a run that continues others it is not the run's own: then its own first seq is asked for.
func (d *drive) loadFrom(ctx context.Context, seq int64) error {
	page, err := d.e.client.HistoryPage(ctx, wire.ReadHistory{WorkflowID: d.lease.workflow, FromSeq: seq})
	if err != nil {
		return err
	}
	records, err := recordsOf(page.Records)
	switch {
	case err != nil:
		return err
	case len(records) == 0:
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the history of workflow %q is empty", d.lease.workflow)
	case records[0].RunID == d.current.id:
		d.current.take(records)
		if page.More {
			return d.current.sync(ctx)
		}
		return nil
	case seq > 1:
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "run %q does not begin at seq %d of its workflow", d.current.id, seq)
	}
	row, err := d.e.client.GetRun(ctx, wire.WorkflowRef{RunID: d.current.id})
	if err != nil {
		return err
	}
	if row.Run == nil || row.Run.FirstSeq <= 1 {
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "run %q has no place in the history of its workflow", d.current.id)
	}
	d.current = d.newRun(d.current.id, row.Run.FirstSeq-1)
	return d.loadFrom(ctx, row.Run.FirstSeq)
}

// pass calls the handler once, in a goroutine that its panic ends alone. A handler that does not come back after its context ended is left to itself: it
// can write nothing any more.
func (d *drive) pass(ctx context.Context) error {
	run := d.current
	run.beginPass()
	if run.PauseRequested() != nil {
		return ErrPausing // a pause lets nothing new begin, so there is nothing to call it for
	}
	d.result.Calls++
	back := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { back <- err }()
		err = contained(func() error { return d.e.opts.Handler(ctx, run) })
	}()
	select {
	case err := <-back:
		return err
	case <-ctx.Done():
	}
	t := d.e.client.opts.Clock.NewTimer(handlerGrace)
	defer t.Stop()
	select {
	case err := <-back:
		return err
	case <-t.C():
		d.lease.lose(errAbandoned)
		d.e.mu.Lock()
		d.e.abandoned++
		d.e.mu.Unlock()
		return errAbandoned
	}
}

// settle does what the handler's return means. over says that the lease is given up.
func (d *drive) settle(ctx context.Context, err error) (outcome string, over bool, _ error) {
	finished, next, first := d.current.ended()
	switch {
	case finished && next != "":
		d.e.ok(d.current.id)
		return d.follow(ctx, next, first)
	case finished:
		d.e.ok(d.current.id)
		return "concluded", true, err
	case d.lease.lost() != nil || ctx.Err() != nil:
		outcome, err = d.cut(ctx)
		return outcome, true, err
	case errors.Is(err, ErrStale):
		return "", false, nil
	case errors.Is(err, ErrWaiting):
		return d.suspend(ctx)
	}
	if ended, bad := d.end(ctx, err); ended {
		return d.settle(ctx, bad)
	}
	outcome, err = d.trouble(ctx, err)
	return outcome, true, err
}

// end concludes the run as the handler's return says; false if it says nothing about the run's end.
func (d *drive) end(ctx context.Context, err error) (bool, error) {
	var f *Failure
	switch {
	case err == nil:
		return true, d.current.Complete(ctx, Payload{})
	case errors.Is(err, ErrCancelled):
		return true, d.current.Cancel(ctx)
	case errors.As(err, &f) && !f.Retryable:
		return true, d.current.Fail(ctx, f.Code, f.Reason)
	}
	return false, nil
}

// suspend gives the lease up, unless there is news.
func (d *drive) suspend(ctx context.Context) (outcome string, over bool, _ error) {
	run := d.current
	if run.untold() {
		return "", false, nil // the cancel came after the handler looked
	}
	got, err := d.e.client.Suspend(ctx, run.id, d.lease.epoch, run.seen(), run.CancelRequested() != nil)
	if err != nil {
		if err = run.refused(err); d.lease.lost() != nil || ctx.Err() != nil {
			outcome, err = d.cut(ctx)
			return outcome, true, err
		}
		outcome, err = d.trouble(ctx, err)
		return outcome, true, err
	}
	d.e.ok(run.id)
	if got.Outcome != "continue" {
		return got.Outcome, true, nil
	}
	run.ask(got.Requests)
	records, err := recordsOf(got.Records)
	if err == nil {
		err = run.takeOr(ctx, got.HeadSeq, records)
	}
	if err != nil {
		outcome, err = d.trouble(ctx, err)
		return outcome, true, err
	}
	return "", false, nil
}

// follow goes on with the run that the handler continued as: the lease covers it.
func (d *drive) follow(ctx context.Context, next string, first int64) (outcome string, over bool, _ error) {
	cancel := d.current.CancelRequested() // it carries over
	d.current = d.newRun(next, first-1)
	if cancel != nil {
		d.current.ask([]wire.Request{*cancel})
	}
	d.result.RunID = next
	if err := d.current.sync(ctx); err != nil {
		outcome, err = d.trouble(ctx, err)
		return outcome, true, err
	}
	return "", false, nil
}
