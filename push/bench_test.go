package push_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// sink is the cheapest receiver there is: it accepts whatever comes.
type sink struct {
	net.Listener
	got  atomic.Int64
	want int64
	done chan struct{}
}

func newSink(b *testing.B) *sink {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	s := &sink{Listener: l, done: make(chan struct{}, 1)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *sink) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		length := 0
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(n))
			}
			if line == "\r\n" {
				break
			}
		}
		if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
		if s.got.Add(1) == s.want {
			s.done <- struct{}{}
		}
	}
}

// transactions counts those of a store, reads too.
type transactions struct {
	backend.Backend
	n atomic.Int64
}

func (c *transactions) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	c.n.Add(1)
	return c.Backend.Update(ctx, verb, fn)
}

func (c *transactions) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	c.n.Add(1)
	return c.Backend.View(ctx, verb, fn)
}

// BenchmarkThroughput is the goal of push.md section 16: accepted POSTs/s to a local receiver, 1,000 registrations, signed bodies of 1 KiB. The receiver runs in the
// same process, on the same processors; the store is in memory.
func BenchmarkThroughput(b *testing.B) {
	const runs = 1000
	counted := &transactions{Backend: memory.Open(clock.System, 64)}
	s, err := engine.New(counted, engine.Options{})
	must(b, err)
	defer s.Close()
	tenant, err := s.Tenant("acme")
	must(b, err)
	v := newSink(b)
	defer v.Close()
	each := max(1, b.N/runs)
	payload := []byte(strings.Repeat("x", 500))
	for i := range runs {
		h := hook("", "h", "http://"+v.Addr().String()+"/in")
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
	v.want = int64(each * runs)
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
	before := counted.n.Load()
	b.ResetTimer()
	must(b, w.Start())
	<-v.done
	b.StopTimer()
	took := b.Elapsed()
	must(b, w.Stop(context.Background()))
	b.ReportMetric(float64(v.want)/took.Seconds(), "POSTs/s")
	b.ReportMetric(float64(counted.n.Load()-before)/float64(v.want), "transactions/POST")
	b.ReportMetric(0, "ns/op")
}
