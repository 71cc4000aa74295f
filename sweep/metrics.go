package sweep

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// metrics are the worker's instruments. Counters begin at 0, or the first increase is invisible to whoever looks at rates.
type metrics struct {
	ticks     metric.Int64Counter
	rows      metric.Int64Counter
	pages     metric.Int64Counter
	saturated metric.Int64Counter
	failed    metric.Int64Counter
	givenUp   metric.Int64Counter
	retired   metric.Int64Counter
	duration  metric.Float64Histogram
	oldest    metric.Float64Gauge
}

func newMetrics(m metric.Meter, w *Worker) (*metrics, error) {
	i := telemetry.Instruments{Meter: m}
	made := &metrics{
		ticks:     i.Counter("rendezvous.sweep.ticks", "{tick}", "Ticks that ended with a report."),
		rows:      i.Counter("rendezvous.sweep.rows", "{row}", "Rows a pass was handed, by what became of them."),
		pages:     i.Counter("rendezvous.sweep.pages", "{page}", "Pages a pass worked; a pass whose count stands still does not run."),
		saturated: i.Counter("rendezvous.sweep.saturated", "{page}", "Pages after which more was due."),
		failed:    i.Counter("rendezvous.sweep.failed", "{page}", "Pages that failed as a whole."),
		givenUp:   i.Counter("rendezvous.sweep.given.up", "{message}", "Messages that their consumer gave up: exhausted ones ran out of deliveries, terminated ones their handler refused."),
		retired:   i.Counter("rendezvous.sweep.retired", "{event}", "Events that became dead letters because nobody wanted them, by reason."),
		duration: i.Seconds("rendezvous.sweep.duration", "Time of a pass in a tick, all its pages.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30),
		oldest: i.Age("rendezvous.sweep.oldest.due", "How long the row was due that a pass found due longest in its last tick."),
	}
	if err := cmp.Or(i.Err, w.gauges(m)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	made.ticks.Add(ctx, 0)
	for _, p := range Passes() {
		for _, c := range [...]metric.Int64Counter{made.pages, made.saturated, made.failed} {
			c.Add(ctx, 0, passLabel(p))
		}
		made.outcomes(ctx, PassReport{Pass: p})
	}
	made.retire(ctx, map[string]int{string(rendezvous.DeadUnclaimed): 0, string(rendezvous.DeadExpired): 0})
	for _, stream := range [...]string{"INBOX", "MATCH"} {
		made.giveUp(ctx, gaveUp{stream, true}, 0)
	}
	return made, nil
}

func passLabel(pass string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("pass", pass))
}

// page counts a page.
func (m *metrics) page(ctx context.Context, pass string, saturated bool, err error) {
	m.pages.Add(ctx, 1, passLabel(pass))
	if saturated {
		m.saturated.Add(ctx, 1, passLabel(pass))
	}
	if err != nil && ctx.Err() == nil {
		m.failed.Add(ctx, 1, passLabel(pass))
	}
}

// pass counts what a pass did in a tick.
func (m *metrics) pass(ctx context.Context, r PassReport) {
	if r.Pages > 0 {
		m.duration.Record(ctx, r.Took.Seconds(), passLabel(r.Pass))
	}
	m.oldest.Record(ctx, r.Oldest.Seconds(), passLabel(r.Pass))
	m.outcomes(ctx, r)
}

func (m *metrics) outcomes(ctx context.Context, r PassReport) {
	for _, o := range [...]struct {
		word string
		n    int
	}{{"done", r.Done}, {"deferred", r.Deferred}, {"failed", r.Failed}, {"released", r.Released}, {"quarantined", r.Quarantined}} {
		m.rows.Add(ctx, int64(o.n), metric.WithAttributes(attribute.String("pass", r.Pass), attribute.String("outcome", o.word)))
	}
}

func (m *metrics) retire(ctx context.Context, reasons map[string]int) {
	for reason, n := range reasons {
		m.retired.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", reason)))
	}
}

func (m *metrics) giveUp(ctx context.Context, g gaveUp, n int) {
	how := "terminated"
	if g.exhausted {
		how = "exhausted"
	}
	m.givenUp.Add(ctx, int64(n), metric.WithAttributes(attribute.String("stream", g.stream), attribute.String("how", how)))
}

// gauges exports what the last tick saw: the depths of the store, the ages of the oldest rows, and what needs attention. Where the depths were not seen, they are
// left out: an old number would look like a good one.
func (w *Worker) gauges(m metric.Meter) error {
	depth, err := m.Int64ObservableGauge("rendezvous.depth", metric.WithUnit("{row}"), metric.WithDescription("Live rows by kind, counted up to 10,000."))
	if err != nil {
		return err
	}
	age, err := m.Float64ObservableGauge("rendezvous.oldest.age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest row by kind; 0 when there is none."))
	if err != nil {
		return err
	}
	dead, err := m.Int64ObservableGauge("rendezvous.dead.letters", metric.WithUnit("{event}"), metric.WithDescription("Dead letters by reason, counted up to 10,000 each."))
	if err != nil {
		return err
	}
	attend, err := m.Int64ObservableGauge("rendezvous.attention", metric.WithUnit("{reason}"), metric.WithDescription("1 where a human should look, by reason; else 0."))
	if err != nil {
		return err
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := w.Last()
		if r.At.IsZero() {
			return nil
		}
		stands := map[attention.Reason]int64{}
		for _, a := range r.Attention {
			stands[a.Reason] = 1
		}
		for _, reason := range attention.Reasons {
			o.ObserveInt64(attend, stands[reason], metric.WithAttributes(attribute.String("reason", string(reason))))
		}
		if at := w.seenAt.Load(); at != nil && r.DepthsErr == nil {
			observeDepths(o, depth, dead, age, r, *at)
		}
		return nil
	}, depth, dead, age, attend)
	return err
}

func observeDepths(o metric.Observer, depth, dead metric.Int64Observable, age metric.Float64Observable, r Report, now time.Time) {
	kind := func(k string) metric.MeasurementOption { return metric.WithAttributes(attribute.String("kind", k)) }
	d := r.Depths
	for k, n := range map[string]int{
		"live_events": d.LiveEvents, "open_waits": d.OpenWaits, "parked_waits": d.ParkedWaits, "quarantined_waits": d.QuarantinedWaits, "woken": d.Woken,
		"timers": d.Timers, "due_timers": d.DueTimers, "dead_letters": d.DeadLetters,
		"due_pushes": d.DuePushes, "failing_pushes": d.FailingPushes, "parked_pushes": d.ParkedPushes,
	} {
		o.ObserveInt64(depth, int64(n), kind(k))
	}
	for _, reason := range rendezvous.DeadReasons {
		o.ObserveInt64(dead, int64(d.Dead[reason]), metric.WithAttributes(attribute.String("reason", string(reason))))
	}
	for k, t := range map[string]time.Time{
		"live_events": d.OldestLiveEvent, "parked_waits": d.OldestParked, "woken": d.OldestWoken, "due_timers": d.OldestDueTimer,
		"due_pushes": d.OldestDuePush,
	} {
		seconds := 0.0
		if !t.IsZero() {
			seconds = max(now.Sub(t).Seconds(), 0)
		}
		o.ObserveFloat64(age, seconds, kind(k))
	}
}
