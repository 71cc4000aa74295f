package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// BenchmarkPush measures what the push-worker asks of this store, with 1,000,000 idle and 100,000 parked registrations beside (PU-39, PU-103).
func BenchmarkPush(b *testing.B) {
	const rows = 1000
	url := migrated.Database(b)
	execute(b, url,
		`INSERT INTO workflows SELECT 'acme', 'w' || i, i % 64, 'r' || i, 'order', 'default', 'running', 5, now(), now(), NULL, now(), '', '', '', '', 0, 0, 0, 0, '',
			0, NULL, '', '', 0, NULL, NULL, '', '', NULL, 1 FROM generate_series(0, 9999) i`,
		`INSERT INTO runs SELECT tenant, run_id, workflow_id, '', '', 'running', 1, 0, started_at, NULL, NULL, '', '', NULL FROM workflows`,
		`INSERT INTO push_registrations `+pushOf("'acme', 'r' || i % 9000, 'idle-' || i, 'w' || i % 9000, 'caller', 'g' || i % 100", "'idle'", "now()", "0, ''", "NULL", "NULL, ''")+` FROM generate_series(1, 1000000) i`,
		`INSERT INTO push_registrations `+pushOf("'acme', 'r' || i % 9000, 'parked-' || i, 'w' || i % 9000, 'caller', 'g' || i % 100", "'parked'", "now()", "0, ''", "NULL", "now(), 'gone'")+` FROM generate_series(1, 100000) i`,
		"VACUUM ANALYZE", "CHECKPOINT")
	s, err := engine.New(open(b, url), engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	n := 0
	claim := func(b *testing.B, want int) store.ClaimedPushes {
		b.Helper()
		n++
		got, err := s.ClaimPushes(b.Context(), store.ClaimPush{
			Namespace: rendezvous.PushCaller, Owner: "pod/1", Request: fmt.Sprint(n), Limit: 256, PerGate: 256, Lease: time.Hour,
		})
		if err != nil || len(got.Pushes) != want {
			b.Fatalf("%d rows, %v", len(got.Pushes), err)
		}
		return got
	}
	b.Run("claim of nothing", func(b *testing.B) {
		for b.Loop() {
			claim(b, 0)
		}
	})
	execute(b, url, `INSERT INTO push_registrations `+pushOf("'acme', 'r' || 9000 + i, 'due', 'w' || 9000 + i, 'caller', 'g' || i % 100", "'live'", "now()", "0, ''", "NULL", "NULL, ''")+fmt.Sprintf(` FROM generate_series(0, %d) i`, rows-1))
	settle := func(b *testing.B, got store.ClaimedPushes, do store.PushSettlement) {
		b.Helper()
		items := make([]store.PushSettlement, len(got.Pushes))
		for i, p := range got.Pushes {
			do.PushItem, do.Token, do.Name = store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}, p.Token, fmt.Sprint(n)
			items[i] = do
		}
		n++
		out, err := s.SettlePushes(b.Context(), items)
		if err != nil || out[0].Err != nil {
			b.Fatalf("%+v, %v", out[0], err)
		}
	}
	b.Run("claim 256 of 1,000 and release them", func(b *testing.B) {
		for b.Loop() {
			settle(b, claim(b, 256), store.PushSettlement{Do: store.PushRelease, Why: store.ReleasePage})
		}
		b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("flush acceptances of 256", func(b *testing.B) {
		got := claim(b, 256)
		for b.Loop() {
			settle(b, got, store.PushSettlement{
				Do: store.PushKeep, Advance: &rendezvous.Cursor{NextSeq: 2}, Attempts: []rendezvous.PushAttempt{{Seq: 1, Class: rendezvous.ClassAccepted, Status: 200}},
			})
		}
		b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		settle(b, got, store.PushSettlement{Do: store.PushRelease, Why: store.ReleasePage})
	})
}
