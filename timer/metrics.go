package timer

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// metrics are the worker's instruments. Counters begin at 0, or the first increase is invisible to whoever looks at rates.
type metrics struct {
	fires     metric.Int64Counter
	pages     metric.Int64Counter
	saturated metric.Int64Counter
	busy      metric.Int64Counter
	failed    metric.Int64Counter
	stuck     metric.Int64Counter
	repairs   metric.Int64Counter
	walks     metric.Int64Counter
	sizes     metric.Int64Histogram
	duration  metric.Float64Histogram
	lateness  metric.Float64Histogram
}

func newMetrics(m metric.Meter, w *Worker) (*metrics, error) {
	i := telemetry.Instruments{Meter: m}
	made := &metrics{
		fires:     i.Counter("rendezvous.timer.fires", "{timer}", "Due timers, by class and by what became of them."),
		pages:     i.Counter("rendezvous.timer.pages", "{page}", "Pages of due timers."),
		saturated: i.Counter("rendezvous.timer.saturated", "{page}", "Pages after which more was due."),
		busy:      i.Counter("rendezvous.timer.busy", "{timer}", "Due timers left for the next page because their run was being written."),
		failed:    i.Counter("rendezvous.timer.failed", "{page}", "Pages that failed as a whole, by code."),
		stuck:     i.Counter("rendezvous.timer.stuck", "{timer}", "Failures of timers that failed 16 times in a row or more."),
		repairs:   i.Counter("rendezvous.timer.repairs", "{timer}", "Timer rows that did not agree with their histories, by kind; 0 in a healthy system."),
		walks:     i.Counter("rendezvous.timer.walks", "{walk}", "Walks over the live workflows that reconcile timers, those that came to their end."),
		sizes:     i.Sizes("rendezvous.timer.page.size", "{timer}", "Timers of a page.", 1, 2, 5, 10, 25, 50, 100, 250, 500),
		duration:  i.Seconds("rendezvous.timer.page.duration", "Time of a page.", .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5),
		lateness: i.Seconds("rendezvous.timer.lateness", "How long after its instant a timer was recorded, by the store's clock.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300),
	}
	if err := cmp.Or(i.Err, w.gauges(m)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	for _, c := range [...]metric.Int64Counter{made.pages, made.saturated, made.busy, made.stuck, made.walks} {
		c.Add(ctx, 0)
	}
	made.failed.Add(ctx, 0, metric.WithAttributes(attribute.String("code", string(rendezvous.CodeUnavailable))))
	for _, class := range [...]rendezvous.TimerClass{rendezvous.TimerAuthor, rendezvous.TimerWait, rendezvous.TimerRun} {
		made.fires.Add(ctx, 0, fireLabels(class, store.FireFired))
	}
	made.repaired(ctx, store.TimerRepairs{})
	return made, nil
}

// gauges are what is asked of the worker when somebody looks.
func (w *Worker) gauges(m metric.Meter) error {
	age, err := m.Float64ObservableGauge("rendezvous.timer.probe.age", metric.WithUnit("s"), metric.WithDescription("Age of the last look at due timers that was answered."))
	if err != nil {
		return err
	}
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if len(w.epochs()) > 0 { // else there is nothing to look at
			o.ObserveFloat64(age, w.probeAge().Seconds())
		}
		return nil
	}, age)
	return err
}

func fireLabels(class rendezvous.TimerClass, o store.FireOutcome) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("class", string(class)), attribute.String("outcome", string(o)))
}

func (m *metrics) page(ctx context.Context, page store.FiredPage, took time.Duration, err error) {
	m.pages.Add(ctx, 1)
	m.sizes.Record(ctx, int64(len(page.Fires)))
	m.duration.Record(ctx, took.Seconds())
	m.busy.Add(ctx, int64(page.Busy))
	if page.Full {
		m.saturated.Add(ctx, 1)
	}
	if err != nil {
		m.failed.Add(ctx, 1, metric.WithAttributes(attribute.String("code", string(rendezvous.AsError(err).Code))))
	}
}

func (m *metrics) fire(ctx context.Context, f store.Fire, now time.Time) {
	m.fires.Add(ctx, 1, fireLabels(f.Class, f.Outcome))
	if f.Stuck {
		m.stuck.Add(ctx, 1)
	}
	if f.Seq > 0 && !now.IsZero() {
		m.lateness.Record(ctx, max(0, now.Sub(f.FireAt)).Seconds())
	}
}

func (m *metrics) repaired(ctx context.Context, r store.TimerRepairs) {
	for kind, n := range map[string]int{"missing": r.Missing, "orphan": r.Orphan, "count": r.Count, "unreadable": r.Unreadable} {
		m.repairs.Add(ctx, int64(n), metric.WithAttributes(attribute.String("kind", kind)))
	}
}
