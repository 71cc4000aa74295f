package push

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/outcome"
	"github.com/rendezvous-events/rendezvous/push/project"
	"github.com/rendezvous-events/rendezvous/store"
)

// ending is what a turn does with its registration when it is over.
type ending struct {
	do     store.PushSettle
	why    store.PushWhy
	at     time.Time // in the store's time
	head   int64
	reason rendezvous.ParkReason
	text   string
}

// released ends a turn uncharged, to be due again at that instant; zero is now.
func released(why store.PushWhy, at time.Time) *ending {
	return &ending{do: store.PushRelease, why: why, at: at}
}

// turn is one claimed registration being worked. Its goroutine alone uses it, but for the flight of acknowledgements.
type turn struct {
	*Worker
	row     store.ClaimedPush
	anchor  anchor
	ctx     context.Context // ends when nothing may be sent any more
	lose    context.CancelCauseFunc
	tracing bool // somebody reads spans
	span    trace.Span

	reg     rendezvous.Registration // as it is sent: of an operator's destination the configuration
	history store.Tenant
	host    string
	cursor  rendezvous.Cursor
	state   outcome.State
	started time.Time
	ready   time.Time // since when the message at hand could have been sent
	records int
	single  bool // read one record at a time: one further on does not decode
	passed  bool // a record was passed
	taken   int64

	labels   metric.MeasurementOption // of attempts that come to labelled
	labelled rendezvous.PushClass

	acks
}

// begin makes a turn of a claimed row.
func (w *Worker) begin(row store.ClaimedPush, a anchor) *turn {
	ctx, lose := context.WithCancelCause(w.posting)
	t := &turn{
		Worker: w, row: row, anchor: a, ctx: ctx, lose: lose, reg: row.Registration, cursor: row.Cursor, started: w.deps.Clock.Now(),
		state: outcome.State{Attempts: row.Attempts, Rejects: row.Rejects, FailingSince: row.FailingSince},
	}
	t.ready, t.flushed = t.started, row.Cursor
	w.leases.hold(row.Token, a, row.ExpiresAt, lose)
	return t
}

// run works the turn to its end and settles it. A run that was reopened behind its terminal record is read on.
func (t *turn) run() {
	defer t.lose(context.Canceled)
	defer t.leases.drop(t.row.Token)
	ctx, span := t.deps.Tracer.Start(t.ctx, "push turn", trace.WithAttributes(t.named()...))
	t.ctx, t.span, t.tracing = ctx, span, span.IsRecording()
	defer span.End()
	defer func() { t.memory.give(t.taken) }()
	for {
		end := t.contained()
		if again := t.settleEnd(end); !again {
			return
		}
	}
}

// contained is deliver, whose panic is a fault of this turn alone (PU-50).
func (t *turn) contained() (end *ending) {
	defer func() {
		if p := recover(); p != nil {
			t.deps.Log.ErrorContext(t.ctx, "turn panicked; its registration is tried again later", "tenant", t.row.Tenant, "run_id", t.row.RunID, "id", t.row.ID,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = t.fault("panic", "the projection broke off inside")
		}
	}()
	return t.deliver()
}

// deliver sends what there is, until there is nothing, something fails, or the turn is over.
func (t *turn) deliver() *ending {
	if end := t.resolve(); end != nil {
		return end
	}
	for {
		page, end := t.read()
		if end != nil {
			return end
		}
		if len(page.Records) == 0 {
			return t.exhausted(page.Head)
		}
		for i, rec := range page.Records {
			if t.leases.stopping(t.row.Token) { // what is taken and where it goes may be other than what this turn knows
				return t.stopped()
			}
			if end := t.record(rec, i == len(page.Records)-1 && !page.More); end != nil {
				return end
			}
			if t.over() {
				return released(store.ReleasePage, time.Time{})
			}
		}
		if !page.More { // what was recorded since wakes the row, or has it due now
			return &ending{do: store.PushRelease, why: store.ReleaseRest, head: page.Head}
		}
	}
}

// over reports whether the turn had its share: 64 records or 5 s (PU-48).
func (t *turn) over() bool {
	return t.records >= turnRecords || t.deps.Clock.Now().Sub(t.started) >= turnTime
}

// resolve finds what is sent for the row. Of an operator's destination that is configuration, read now (push.md section 1).
func (t *turn) resolve() *ending {
	if t.row.Namespace == rendezvous.PushOperator {
		reg, ok := t.deps.Destinations.Lookup(t.row.RunID, t.row.ID)
		if !ok {
			return t.removed()
		}
		reg.Events = t.row.Events // what the row is woken for
		t.reg = reg
	}
	t.host = hostOf(t.reg.URL)
	if t.history == nil {
		history, err := t.store.Tenant(t.row.Tenant)
		if err != nil {
			return t.fault(string(rendezvous.CodeOf(err)), "the tenant's history cannot be had")
		}
		t.history = history
	}
	return nil
}

// removed parks the row of a destination that is not configured any more, without an attempt.
func (t *turn) removed() *ending {
	end := &ending{do: store.PushPark, reason: rendezvous.ParkDestinationRemoved, text: "the destination is not configured any more"}
	t.counts.add(Report{Parked: 1})
	t.metrics.parkedFor(t.life, end.reason)
	t.deps.Log.InfoContext(t.life, "push registration parked", "tenant", t.row.Tenant, "run_id", t.row.RunID, "id", t.row.ID, "reason", end.reason)
	return end
}

// read reads the next records, once there is memory for them. Who waits for more holds nothing.
func (t *turn) read() (store.HistoryPage, *ending) {
	limit := turnRecords - t.records
	if t.single {
		limit = 1
	}
	for want := int64(turnMemory); ; {
		if err := t.reserve(want); err != nil {
			return store.HistoryPage{}, t.stopped()
		}
		page, err := t.history.ReadHistoryPage(t.ctx, t.row.WorkflowID, t.cursor.NextSeq, limit, pageBytes)
		switch {
		case err != nil && t.ctx.Err() != nil:
			return page, t.stopped()
		case rendezvous.CodeOf(err) == rendezvous.CodeCorrupt && limit > 1:
			limit, t.single = 1, true // those before the one that does not decode are sent
			continue
		case rendezvous.CodeOf(err) == rendezvous.CodeCorrupt:
			return page, t.fault("unreadable_record", "a record does not decode")
		case err != nil:
			t.deps.Log.WarnContext(t.ctx, "history not read; the registration is tried again", "tenant", t.row.Tenant, "run_id", t.row.RunID, "id", t.row.ID, "error", err)
			return page, t.own()
		}
		if n := need(page); n > want && want < t.memory.most {
			want = n
			continue
		}
		return page, nil
	}
}

// reserve gives back what the turn holds of the budget and takes n instead.
func (t *turn) reserve(n int64) error {
	t.memory.give(t.taken)
	t.taken = 0
	var err error
	t.taken, err = t.memory.take(t.ctx, n)
	return err
}

// record sends a record's messages and passes it; last says that nothing stands behind it.
func (t *turn) record(rec rendezvous.Record, last bool) *ending {
	if rec.RunID != t.row.RunID {
		return t.complete() // a later run's: the followed one is over
	}
	traced := t.traceOf(rec)
	messages, err := project.Messages(rec, t.options(traced))
	switch {
	case errors.Is(err, project.ErrUnknown):
		return released(store.ReleaseOwn, t.now().Add(unknownWait)) // newer pods know it: never skipped, not charged
	case err != nil:
		return t.fault("projection", "a record cannot be projected")
	}
	from := t.cursor.NextIndex
	if n := len(messages); n > 0 && from > messages[n-1].Index {
		from = 0 // it counts in another projection, which the registration had before: of these none was accepted (PU-47)
	}
	for i, m := range messages {
		if m.Index < from {
			continue
		}
		next := rendezvous.Cursor{NextSeq: rec.Seq, NextIndex: m.Index + 1}
		if i == len(messages)-1 {
			next = rendezvous.Cursor{NextSeq: rec.Seq + 1}
		}
		if end := t.send(rec, m, traced, next); end != nil {
			return end
		}
	}
	t.records++
	t.passed = true
	t.counts.add(Report{Records: 1})
	t.cursor = rendezvous.Cursor{NextSeq: rec.Seq + 1}
	if last && rec.Kind.Terminal() {
		return t.complete()
	}
	return nil
}

func (t *turn) complete() *ending { return &ending{do: store.PushComplete} }

// options are the projection's.
func (t *turn) options(traced rendezvous.Trace) project.Options {
	o := project.Options{
		Tenant: t.row.Tenant, Workflow: t.row.WorkflowID, Projection: t.reg.Projection, Events: t.reg.Events, Source: t.cfg.Source, MaxBody: t.cfg.MaxBody,
		IncludePayload: t.reg.IncludePayload != nil && *t.reg.IncludePayload,
	}
	if t.withTrace() {
		o.Trace = traced
	}
	return o
}

func (t *turn) withTrace() bool { return t.reg.Trace != nil && *t.reg.Trace }

// exhausted ends a turn that finds nothing at its cursor: the row rests, or it stands behind the end of its run and is done without a POST (PU-45).
func (t *turn) exhausted(head int64) *ending {
	rest := &ending{do: store.PushRelease, why: store.ReleaseRest, head: head}
	if t.passed || t.cursor.NextSeq <= 1 {
		return rest
	}
	before, err := t.history.ReadHistoryPage(t.ctx, t.row.WorkflowID, t.cursor.NextSeq-1, 1, 1)
	switch {
	case err != nil && t.ctx.Err() != nil:
		return t.stopped()
	case err != nil:
		return t.own()
	case len(before.Records) == 0:
		return rest
	}
	if rec := before.Records[0]; rec.RunID != t.row.RunID || rec.Kind.Terminal() {
		return t.complete()
	}
	return rest
}

// own ends a turn for trouble that is ours: not charged (push.md section 7).
func (t *turn) own() *ending {
	d := outcome.Decide(t.state, outcome.Result{Class: rendezvous.ClassOwn, At: t.now()}, t.limits(), t.deps.Random)
	return released(store.ReleaseOwn, d.Next)
}

// stopped ends a turn whose context did: it gives the lease back, where it has it still.
func (t *turn) stopped() *ending { return released(store.ReleaseDrain, time.Time{}) }

// fault ends a turn that cannot make a message: charged, so that it parks at the ceiling instead of failing for ever.
func (t *turn) fault(code, text string) *ending {
	t.counts.add(Report{Faults: 1})
	t.metrics.faults.Add(t.ctx, 1)
	a := rendezvous.PushAttempt{
		Seq: t.cursor.NextSeq, Index: t.cursor.NextIndex, At: t.now(), Class: rendezvous.ClassFault, Code: code, Error: text, Worker: t.cfg.Owner,
	}
	return t.failed(a, outcome.Result{Class: rendezvous.ClassFault, At: a.At})
}

// limits are those of the registration.
func (t *turn) limits() outcome.Limits {
	return outcome.Limits{MaxAttempts: t.reg.MaxAttempts, OnRejectLimit: t.reg.OnRejectLimit, MaxAge: t.cfg.MaxAge}
}

// now is the store's now, as the claim told it and the clock carried it on.
func (t *turn) now() time.Time { return t.anchor.at(t.deps.Clock.Now()) }

// name names a settlement of the registration, and is used once.
func (t *turn) name() string {
	t.settlements++
	return strconv.FormatInt(t.row.Token, 10) + "/" + strconv.Itoa(t.settlements)
}
