package transport_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

// BenchmarkDo is one POST of 1 KiB to a receiver on loopback that answers at once, on kept connections.
func BenchmarkDo(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 8<<10)
				for {
					if _, err := conn.Read(buf); err != nil { // head and body are one packet
						return
					}
					if _, err := conn.Write([]byte(ok204)); err != nil {
						return
					}
				}
			}()
		}
	}()
	policy, err := target.New(target.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	c := transport.New(transport.Settings{Policy: policy, Clock: clock.System, IdlePerHost: 256})
	defer c.Close()
	r := transport.Request{
		Namespace: rendezvous.PushOperator, URL: "http://" + listener.Addr().String() + "/hook", Body: []byte(strings.Repeat("x", 1<<10)), Timeout: 15 * time.Second,
		Headers: []transport.Header{{"Content-Type", "application/cloudevents+json"}, {"webhook-id", "run/1/0"}},
	}
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a := c.Do(b.Context(), r); a.Err != nil || a.Status != 204 {
				b.Errorf("%+v", a)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
}
