package push_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/sink"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// BenchmarkThroughput is the goal of push.md section 16: accepted POSTs/s to a local receiver, 1,000 registrations, signed bodies of 1 KiB. The receiver runs in the
// same process, on the same processors; the store is in memory.
func BenchmarkThroughput(b *testing.B) {
	const runs = 1000
	counted := storetest.Count(memory.Open(clock.System, 64))
	s, err := engine.New(counted, engine.Options{})
	must(b, err)
	defer s.Close()
	tenant, err := s.Tenant("acme")
	must(b, err)
	each := max(1, b.N/runs)
	messages := int64(each * runs)
	var got atomic.Int64
	done := make(chan struct{})
	v, err := sink.Listen(func(w io.Writer, r sink.Request) error {
		if got.Add(1) == messages {
			close(done)
		}
		return sink.Accept(w, r)
	})
	must(b, err)
	defer v.Close()
	payload := []byte(strings.Repeat("x", 500))
	for i := range runs {
		h := hook("", "h", v.URL())
		h.Signing = []rendezvous.SigningKey{{Key: rendezvous.NewSecret(signingKey)}}
		h.IncludePayload = new(true)
		run := fmt.Sprint("r-", i)
		_, err := tenant.StartRun(b.Context(), store.Start{
			WorkflowID: "wf-" + run, RunID: run, Type: "order", Push: []store.PutPush{{Registration: h}}, Input: payload, ContentType: "text/plain",
		}, time.Time{})
		must(b, err)
		for at := 1; at < each; {
			records := make([]rendezvous.Record, min(500, each-at))
			for j := range records {
				records[j] = rendezvous.Record{
					RunID: run, Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "n"}), Payload: payload, ContentType: "text/plain",
				}
			}
			_, err := tenant.Append(b.Context(), store.Append{RunID: run, ExpectedSeq: int64(at), BatchID: strconv.Itoa(at), Records: records}, time.Time{})
			must(b, err)
			at += len(records)
		}
	}
	policy, err := target.New(target.Settings{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true})
	must(b, err)
	client := transport.New(transport.Settings{Policy: policy, Clock: clock.System, IdlePerHost: 256})
	defer client.Close()
	none, err := push.NewDestinations(nil, time.Time{})
	must(b, err)
	w, err := push.New(s, nil, push.Deps{
		Poster: client, Tokens: oauth.New(client, clock.System, "1"), Destinations: none, Random: func() float64 { return 0.5 }, Clock: clock.System,
		Log: slog.New(slog.DiscardHandler), Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: metricnoop.NewMeterProvider().Meter(""),
	}, push.Config{Owner: "bench", Source: "urn:plane", GateInFlight: 256})
	must(b, err)
	counted.Reset()
	b.ResetTimer()
	must(b, w.Start())
	<-done
	b.StopTimer()
	took := b.Elapsed()
	must(b, w.Stop(context.Background()))
	b.ReportMetric(float64(messages)/took.Seconds(), "POSTs/s")
	b.ReportMetric(float64(counted.Counts().Updates+counted.Counts().Views)/float64(messages), "transactions/POST")
	b.ReportMetric(0, "ns/op")
}
