package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

func TestMain(m *testing.M) {
	if os.Getenv(storeVariable) != "" { // a pod of a scenario
		main()
		return
	}
	goleak.VerifyTestMain(pgtest.WithCluster(m))
}

// What is filled in by hand must be what the verbs would have left: a start on rows that have to be mended measures something else.
func TestWhatIsFilledInNeedsNoRepairAndFires(t *testing.T) {
	const n = 150 // more than there are shards
	for kind, url := range map[string]func() string{
		"postgres": func() string { return pgtest.Database(t) },
		"sqlite":   func() string { return "sqlite:" + t.TempDir() },
	} {
		t.Run(kind, func(t *testing.T) {
			at := url()
			if err := fill(t.Context(), at, n); err != nil {
				t.Fatal(err)
			}
			s, err := open.Open(t.Context(), at, open.Options{Clock: clock.System, Shards: rendezvous.DefaultShards})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			h, err := s.PoolHandle(store.PoolTimer, "bench/1")
			if err != nil {
				t.Fatal(err)
			}
			all := make([]int, rendezvous.DefaultShards)
			for i := range all {
				all[i] = i
			}
			got, err := h.AcquireOwnedShards(t.Context(), all, store.MaxShardTTL)
			if err != nil {
				t.Fatal(err)
			}
			var own []store.ShardEpoch
			for _, l := range got.Won {
				own = append(own, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
			}
			looked := 0
			for after, more := (*store.WorkflowPosition)(nil), true; more; more = after != nil {
				page, err := h.ReconcileTimers(t.Context(), own, true, after, 0)
				if err != nil {
					t.Fatal(err)
				}
				if page.Repairs != (store.TimerRepairs{}) {
					t.Errorf("repairs: %+v", page.Repairs)
				}
				looked += page.Looked
				after = page.Next
			}
			if looked != n+1 {
				t.Errorf("%d live workflows, want %d", looked, n+1)
			}
			page, err := h.FireDueTimers(t.Context(), own, 0)
			if err != nil || len(page.Fires) != 1 || page.Fires[0].Outcome != store.FireFired || page.Fires[0].WorkflowID != "due-1" {
				t.Errorf("fires: %+v, %v", page.Fires, err)
			}
		})
	}
}
