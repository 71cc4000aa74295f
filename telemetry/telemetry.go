// Package telemetry sets OpenTelemetry up: traces by OTLP where the standard OTEL_ environment asks for them, metrics for Prometheus, and W3C trace context
// everywhere. Without that environment nothing is exported and spans cost next to nothing.
package telemetry

import (
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
)

// Scope is the name of the plane's instrumentation.
const Scope = "github.com/rendezvous-events/rendezvous"

// Telemetry is a process's tracer, meter and metrics page. Nothing of it is global.
type Telemetry struct {
	Tracer  trace.Tracer
	Meter   metric.Meter
	Metrics http.Handler // the Prometheus page
	stop    []func(context.Context) error
}

// Start reads the OTEL_ environment. service is the default of OTEL_SERVICE_NAME. Errors name the variable that is wrong.
func Start(ctx context.Context, service, version string) (*Telemetry, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, rendezvous.InvalidField("OTEL_RESOURCE_ATTRIBUTES", "does not parse").Because(err)
	}
	t := &Telemetry{}
	if err := t.startMetrics(res); err != nil {
		return nil, err
	}
	if err := t.startTraces(ctx, res); err != nil {
		_ = t.Stop(ctx)
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) startMetrics(res *resource.Resource) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return err
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(res))
	t.Meter = provider.Meter(Scope)
	t.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

func (t *Telemetry) startTraces(ctx context.Context, res *resource.Resource) error {
	if !tracesAsked() {
		t.Tracer = tracenoop.NewTracerProvider().Tracer(Scope)
		return nil
	}
	exporter, err := traceExporter(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res)) // the sampler is OTEL_TRACES_SAMPLER's
	t.Tracer = provider.Tracer(Scope)
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

// tracesAsked follows the standard variables: an OTLP endpoint or the exporter otlp, and the SDK not disabled.
func tracesAsked() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch os.Getenv("OTEL_TRACES_EXPORTER") {
	case "none":
		return false
	case "otlp":
		return true
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func traceExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	protocol := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	}
	return nil, rendezvous.InvalidField("OTEL_EXPORTER_OTLP_PROTOCOL", "%q is none of http/protobuf, grpc", protocol)
}

// Stop flushes what was recorded and returns when it is sent or ctx ends. Idempotent.
func (t *Telemetry) Stop(ctx context.Context) error {
	var first error
	for _, stop := range t.stop {
		if err := stop(ctx); err != nil && first == nil {
			first = err
		}
	}
	t.stop = nil
	return first
}
