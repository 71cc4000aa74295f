package telemetry

import "go.opentelemetry.io/otel/metric"

// Instruments makes a worker's instruments one after the other. Err is the first that the meter refused.
type Instruments struct {
	Meter metric.Meter
	Err   error
}

// Counter counts up.
func (i *Instruments) Counter(name, unit, text string) metric.Int64Counter {
	c, err := i.Meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
	i.keep(err)
	return c
}

// Sizes is a histogram of how much there was at a time.
func (i *Instruments) Sizes(name, unit, text string, bounds ...float64) metric.Int64Histogram {
	h, err := i.Meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
	i.keep(err)
	return h
}

// Seconds is a histogram of how long things took.
func (i *Instruments) Seconds(name, text string, bounds ...float64) metric.Float64Histogram {
	h, err := i.Meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
	i.keep(err)
	return h
}

// Age is a gauge of seconds.
func (i *Instruments) Age(name, text string) metric.Float64Gauge {
	g, err := i.Meter.Float64Gauge(name, metric.WithUnit("s"), metric.WithDescription(text))
	i.keep(err)
	return g
}

func (i *Instruments) keep(err error) {
	if i.Err == nil {
		i.Err = err
	}
}
