package api_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// sweep.md section 8: system.check says what a human should look at, once, whether this process sweeps or another does.
func TestSystemCheckSaysWhatToLookAt(t *testing.T) {
	for name, sweeps := range map[string]bool{"with a sweeper": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			now := clock.NewManual(clock.System.Now())
			n := nodetest.Start(t, func(c *node.Config) {
				c.StoreClock = now
				if !sweeps {
					c.Sweep = nil
				}
			})
			d := doors(t, n)[0]
			ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"r","type":"order"}`)
			match(t, `{"verdict":"ok","reasons":[]}`, ok(t, d, "acme", "system.check", ""))
			now.Advance(6 * time.Minute)
			match(t, `{"verdict":"degraded","reasons":["`+attention.NoExecutor.String()+`"]}`, ok(t, d, "acme", "system.check", ""))
			ok(t, d, "acme", "runs.acquire", `{"run_id":"r","owner":"me","ttl_ms":30000,"acquire_id":"a"}`)
			if !sweeps { // a sweeper's word stands until its next look
				match(t, `{"verdict":"ok","reasons":[]}`, ok(t, d, "acme", "system.check", ""))
			}
		})
	}
}
