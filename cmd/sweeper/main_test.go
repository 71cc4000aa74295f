package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/sweep"
)

func TestMain(m *testing.M) { nodetest.Main(pgtest.WithCluster(m), main) }

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
		"sweep-tick":       "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_TICK=1ns",
		"sweep-woken":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_WOKEN=1h",
		"sweep-window":     "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_WINDOW=0s",
		"sweep-lease":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_LEASE=999ms",
		"retain-dead":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_RETAIN_DEAD=-1s",
		"retain-workflows": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_RETAIN_WORKFLOWS=23h59m",
		"push-max-age":     "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_PUSH_MAX_AGE=59s",
		"sweep-pages":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_PAGES=0",
	})
}

// owns is the line of the metrics that says of how many shards.
func owns(shards int) string {
	return fmt.Sprintf(`rendezvous_shard_owned\{[^}]*pool="sweep"[^}]*\} %d`, shards)
}

// worked is the line of the metrics that says that a pass worked a page.
func worked(pass string) string {
	return fmt.Sprintf(`rendezvous_sweep_pages_total\{[^}]*pass="%s"[^}]*\} [1-9]\d*`, pass)
}

// SW-33, SH-28: alone the program owns every shard and runs every pass, as its metrics tell.
func TestItRunsEveryPassUntilItIsTold(t *testing.T) {
	nodetest.Serving(t, "sweeper", func(admin string) {
		nodetest.Shows(t, admin, owns(rendezvous.DefaultShards))
		for _, pass := range sweep.Passes() {
			nodetest.Shows(t, admin, worked(pass))
		}
	})
}

// shards.md section 5, SH-21, SH-22, SW-33: two programs divide the shards; one is killed, and the other ends the leases that its shards hold; a third comes and has its
// half, and is left with all when the second goes. One that finds no shard left to own is ready all the same.
func TestSweepersDivideTheShardsAndSucceedEachOther(t *testing.T) {
	const half = rendezvous.DefaultShards / 2
	database := pgtest.Database(t)
	url, _ := nodetest.Broker(t)
	env := []string{"RENDEZVOUS_STORE=" + database, "RENDEZVOUS_MIGRATE=true", "RENDEZVOUS_NATS=" + url}
	first := nodetest.Spawn(t, "sweeper", env...)
	second := nodetest.Spawn(t, "sweeper", env...)
	for _, p := range []*nodetest.Pod{first, second} {
		nodetest.Shows(t, p.Admin, owns(half))
	}

	s, err := open.Open(t.Context(), database, open.Options{Clock: clock.System, Shards: rendezvous.DefaultShards})
	must(t, err)
	defer s.Close()
	tenant, err := s.Tenant("acme")
	must(t, err)
	runs := abandon(t, tenant, 2*rendezvous.DefaultShards)
	killed := clock.System.Now()
	first.Kill()
	for left := true; left; _ = clock.Sleep(t.Context(), clock.System, nodetest.Look) {
		rows, _, err := s.AbandonedRuns(t.Context(), 0, "")
		must(t, err)
		left = len(rows) > 0 || clock.System.Now().Sub(killed) < lease
		if clock.System.Now().Sub(killed) > nodetest.Patience/4 {
			t.Fatalf("%d leases that ran out stand %s after the kill", len(rows), clock.System.Now().Sub(killed))
		}
	}
	t.Logf("every lease of the killed sweeper's shards is ended %s after the kill", clock.System.Now().Sub(killed))
	for _, run := range runs {
		w, err := tenant.DescribeWorkflow(t.Context(), store.WorkflowRef{RunID: run})
		must(t, err)
		if w.LeaseOwner != "" || w.Reclaims != 1 {
			t.Errorf("%s: owner %q, reclaimed %d times", run, w.LeaseOwner, w.Reclaims)
		}
	}
	nodetest.Shows(t, second.Admin, owns(2*half))

	third := nodetest.Spawn(t, "sweeper", env...)
	nodetest.Shows(t, third.Admin, owns(half))
	told := clock.System.Now()
	second.Stop()
	nodetest.Shows(t, third.Admin, owns(2*half))
	t.Logf("all is the third's %s after the second was told to go", clock.System.Now().Sub(told))
	if status, body := nodetest.Page(t, third.Admin, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	third.Stop()
	d, err := s.ShardDirectory(t.Context(), store.PoolSweep)
	must(t, err)
	for _, l := range d.Shards {
		if l.Owner != "" {
			t.Errorf("after all went shard %d is owned: %+v", l.Shard, l)
		}
	}
	if len(d.Members) > 0 {
		t.Errorf("after all went there are %+v", d.Members)
	}
}

// lease is how long the drivers of abandoned runs are believed in.
const lease = rendezvous.MinLease

// abandon makes runs, in about every shard, whose drivers are heard of once.
func abandon(t *testing.T, tenant store.Tenant, n int) (runs []string) {
	t.Helper()
	for i := range n {
		run := fmt.Sprint("run-", i)
		runs = append(runs, run)
		_, err := tenant.StartRun(context.Background(), store.Start{WorkflowID: "flow-" + run, RunID: run, Type: "order"}, time.Time{})
		must(t, err)
		_, err = tenant.AcquireLease(context.Background(), run, "driver", lease, "acquire")
		must(t, err)
	}
	return runs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
