package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	wildAtOnce  = 24
	wildHold    = 2500 * time.Millisecond // longer than the lease: some holders are deposed
	shareIgnore = 0.08                    // of the notices are acknowledged by a driver that dies before it does anything

	shareAbandon  = 0.10 // of a driver's looks at its run it dies,
	shareEarly    = 0.03 // concludes although waits are open,
	shareWithdraw = 0.03 // gives a wait up,
	shareArm      = 0.10 // arms a timer, over one that may be live,
	shareDisarm   = 0.05 // cancels one
	shareWithin   = 0.30 // of the waits have a deadline
)

// drivers drive the runs of the wild queue of one tenant, badly: they hold leases too long, die with them, conclude early, and write what the contract
// lets them. What they must never see is an answer that the contract rules out.
type drivers struct {
	access *access
	ledger *ledger
	owner  string
	slots  chan struct{}
	pull   *messaging.Consumption
	work   sync.WaitGroup
	ctx    context.Context
	kill   context.CancelFunc
}

func startDrivers(a *access, l *ledger, log *slog.Logger) (*drivers, error) {
	d := &drivers{access: a, ledger: l, owner: "wild/" + client.NewID(), slots: make(chan struct{}, wildAtOnce)}
	d.ctx, d.kill = context.WithCancel(context.Background())
	queue := messaging.ResumeQueue{Tenant: a.tenant, Queue: queueWild, AckWait: ackWait}
	pull, err := messaging.ConsumeResume(a.driver.NATS(), queue, messaging.Deps{Log: log}, messaging.ConsumeOptions{Batch: messaging.Batch{Size: 8, Linger: -1}}, d.notices)
	d.pull = pull
	return d, err
}

// stop ends every driver where it stands; their leases run out.
func (d *drivers) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := d.pull.Stop(ctx)
	d.kill()
	d.work.Wait()
	return err
}

func (d *drivers) notices(ctx context.Context, batch []messaging.ResumeNotice) []messaging.Outcome {
	out := make([]messaging.Outcome, len(batch))
	for i, n := range batch {
		out[i] = messaging.Ack()
		if rand.Float64() < shareIgnore {
			continue
		}
		select {
		case d.slots <- struct{}{}:
		case <-ctx.Done():
			out[i] = messaging.Release()
			continue
		}
		d.work.Go(func() {
			defer func() { <-d.slots }()
			t := &drive{drivers: d, run: n.RunID}
			t.finished(t.drive(d.ctx))
		})
	}
	return out
}

// drive is one lease.
type drive struct {
	*drivers
	run      string
	workflow string
	epoch    int64
	in       input
	head     int64
	open     map[string]bool // effects: true while the wait is open, false once it is closed
}

var errAbandoned = errors.New("the driver dies here")

// finished judges how a drive ended. A lease lost, a run that ended meanwhile, a plane that was away: all that is what soaking is about.
func (d *drive) finished(err error) {
	switch code := rendezvous.CodeOf(err); {
	case err == nil, d.ctx.Err() != nil:
	case errors.Is(err, errAbandoned):
		d.ledger.count(&d.ledger.abandoned)
	case code == rendezvous.CodeLeaseHeld, code == rendezvous.CodeSealed, code == rendezvous.CodeFenced, client.Retryable(err):
	default:
		d.ledger.violation("drive of %s/%s: %v", d.access.tenant, d.run, err)
	}
}

func (d *drive) drive(ctx context.Context) error {
	c := d.access.driver
	got, err := c.AcquireLease(ctx, wire.AcquireLease{RunID: d.run, Owner: d.owner, TTLMS: new(lease.Milliseconds())})
	if err != nil {
		return err
	}
	d.workflow, d.epoch = got.WorkflowID, got.Epoch
	for {
		if rand.Float64() < shareAbandon {
			return errAbandoned
		}
		if err := d.read(ctx); err != nil {
			return err
		}
		over, err := d.act(ctx)
		if over || err != nil {
			return err
		}
	}
}

// read learns how the run stands.
func (d *drive) read(ctx context.Context) error {
	records, err := d.access.driver.History(ctx, d.workflow, 1)
	if err != nil {
		return err
	}
	d.open = map[string]bool{}
	for i, r := range records {
		if r.Seq != int64(i)+1 {
			d.ledger.violation("history of %s/%s: record %d has seq %d", d.access.tenant, d.workflow, i+1, r.Seq)
		}
		d.head = r.Seq
		if r.RunID != d.run {
			continue
		}
		switch r.Kind {
		case rendezvous.RunStarted:
			if err := (client.Payload{Data: r.Payload}).JSON(&d.in); err != nil {
				return err
			}
		case rendezvous.WaitRegistered:
			d.open[r.Effect] = true
		case rendezvous.WaitAnswered, rendezvous.WaitTimedOut, rendezvous.WaitWithdrawn:
			d.open[r.Effect] = false
		}
	}
	return nil
}

// act does one thing; over says that the lease was given up.
func (d *drive) act(ctx context.Context) (over bool, err error) {
	missing, waiting := "", ""
	for step := range d.in.Steps {
		effect := effectOf(step)
		open, known := d.open[effect]
		switch {
		case !known && missing == "":
			missing = effect
		case open:
			waiting = effect
		}
	}
	switch r := rand.Float64(); {
	case r < shareEarly, missing == "" && waiting == "":
		return d.conclude(ctx)
	case waiting != "" && r < shareEarly+shareWithdraw:
		return false, d.withdraw(ctx, waiting)
	case r > 1-shareArm:
		return false, d.arm(ctx)
	case r > 1-shareArm-shareDisarm:
		return false, d.disarm(ctx)
	case missing != "":
		return false, d.register(ctx, missing)
	case r < 0.4:
		pause(ctx, rand.N(wildHold))
		_, err := d.access.driver.Collect(ctx, d.run, d.epoch)
		return false, err
	}
	return d.suspend(ctx)
}

func (d *drive) register(ctx context.Context, effect string) error {
	var step int
	for effectOf(step) != effect {
		step++
	}
	req := wire.RegisterWait{RunID: d.run, Epoch: d.epoch, Effect: effect, Type: eventType, Keys: []rendezvous.Key{key(d.in.value(step))}}
	if rand.Float64() < shareWithin {
		req.DeadlineAfterMS = new(rand.N(withinMost).Milliseconds())
	}
	got, err := d.access.driver.RegisterWait(ctx, req)
	if err == nil {
		d.ledger.registered(d.access.tenant, rendezvous.WaitID{RunID: d.run, Effect: effect}, got.Answered != nil)
	}
	return err
}

// arm arms one of a few timers: some come due while the lease is held, and are parked.
func (d *drive) arm(ctx context.Context) error {
	timer := fmt.Sprintf("t%d", rand.IntN(3))
	got, err := d.access.driver.ArmTimer(ctx, wire.ArmTimer{RunID: d.run, Epoch: d.epoch, TimerID: timer, AfterMS: new(rand.N(napMost).Milliseconds())})
	if err == nil {
		d.ledger.told(promise{d.access.tenant, d.run, got.ArmedSeq, []rendezvous.Kind{rendezvous.TimerStarted}, timer, got.FireAt.Time})
	}
	return err
}

func (d *drive) disarm(ctx context.Context) error {
	_, err := d.access.driver.CancelTimer(ctx, wire.CancelTimer{RunID: d.run, Epoch: d.epoch, TimerID: fmt.Sprintf("t%d", rand.IntN(3))})
	return err
}

func (d *drive) withdraw(ctx context.Context, effect string) error {
	_, err := d.access.driver.WithdrawWait(ctx, wire.WithdrawWait{RunID: d.run, Effect: effect, Epoch: d.epoch, Reason: "soak"})
	return err
}

// suspend gives the lease up, unless there is news.
func (d *drive) suspend(ctx context.Context) (over bool, err error) {
	got, err := d.access.driver.Suspend(ctx, d.run, d.epoch, d.head, false)
	return err == nil && got.Outcome != "continue", err
}

// conclude ends the run or continues it: then the lease covers the next one, and this drive goes on with that.
func (d *drive) conclude(ctx context.Context) (over bool, err error) {
	req := wire.Conclude{RunID: d.run, Epoch: d.epoch, ExpectedSeq: d.head, Outcome: rendezvous.StatusCompleted}
	if next := d.in; d.in.Run+1 < d.in.Runs {
		next.Run++
		req.Outcome, req.Next = rendezvous.StatusContinued, startOf(next, client.NewID())
	}
	got, err := d.access.driver.Conclude(ctx, req)
	switch {
	case errors.Is(err, rendezvous.ErrConflict) && rendezvous.AsError(err).Details["what"] == "head":
		return false, nil // an answer came in between: read again
	case err != nil:
		return false, err
	}
	d.ledger.concluded(d.access.tenant, d.run)
	if got.NextRun == "" {
		return true, nil
	}
	d.ledger.started(d.access.tenant, d.workflow, got.NextRun)
	d.run = got.NextRun
	return false, nil
}
