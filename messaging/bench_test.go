package messaging_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// BenchmarkPublish publishes notices in calls of 500 as a worker's batch does, with the embedded server synced and not, alone and with
// consumers draining.
func BenchmarkPublish(b *testing.B) {
	for _, sync := range []bool{true, false} {
		for _, drain := range []bool{false, true} {
			b.Run(fmt.Sprintf("sync=%v/drain=%v", sync, drain), func(b *testing.B) { benchPublish(b, sync, drain) })
		}
	}
}

func benchPublish(b *testing.B, sync, drain bool) {
	cfg := messaging.DefaultConfig()
	cfg.Embedded.StoreDir, cfg.Embedded.NoSync = b.TempDir(), !sync
	broker, err := messaging.StartEmbedded(cfg, testLog(b))
	must(b, err)
	conn, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(b), InProcess: broker})
	must(b, err)
	must(b, conn.Provision(b.Context()))
	s := newSeen()
	var c *messaging.Consumption
	if drain {
		c, err = conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
		must(b, err)
	}
	n := 0
	for b.Loop() {
		must(b, conn.Publish(b.Context(), events(n, n+500)))
		n += 500
	}
	if drain {
		for s.names() < n {
			<-s.more
		}
		must(b, c.Stop(context.Background()))
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "notices/s")
	must(b, conn.Drain(context.Background()))
	must(b, broker.Shutdown(context.Background()))
}
