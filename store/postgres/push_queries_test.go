package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// pushOf selects rows of push_registrations: their keys, state, instant, lease and parking, and nothing in all else.
func pushOf(key, state, at, lease, until, parked string) string {
	token, owner, _ := strings.Cut(lease, ",")
	return fmt.Sprintf(`SELECT %s, 1, 1, rdv_now(), 1, 2, 0, %s, %s, 0, NULL, 0, 0, 0, '', %s, %s, %s, 'r', %s, %s = 'gone', 0, '', '', NULL, '', 0, 0, NULL, '{}'`,
		key, state, at, parked, token, owner, until, state)
}

func push(tenant, run, id string) backend.PushKey {
	return backend.PushKey{Tenant: tenant, RunID: run, ID: id}
}

// callers asks for what is due of callers.
func callers(tx backend.Tx, tenant string) backend.PushDue {
	return backend.PushDue{Namespace: rendezvous.PushCaller, At: tx.Now(), Tenant: tenant}
}

// pushQueries are those about push registrations. Those that rest, are parked or are due later are in none of them (PU-39).
var pushQueries = []query{
	{"Pushes", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Pushes(ctx, []backend.PushKey{push("acme", "live-0", "idle-5"), push("globex", "live-1", "due")}))
	}},
	{"LockPushes", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.LockPushes(ctx, []backend.PushKey{push("acme", "live-0", "idle-5"), push("globex", "live-1", "due")}))
	}},
	{"PushesOf", 4, func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.Push](4)(tx.PushesOf(ctx, []backend.RunKey{{Tenant: "globex", ID: "live-1"}}))
	}},
	// The due and the lapsed once for their places and once whole.
	{"PU-39 DuePushes", 30, func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.Push](13)(tx.DuePushes(ctx, callers(tx, "globex"), 20))
	}},
	{"PU-39 DuePushes of a tenant that has none", 3, func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.Push](0)(tx.DuePushes(ctx, callers(tx, "acme"), 20))
	}},
	{"PU-39 CountDuePushes", 20, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.CountDuePushes(ctx, callers(tx, ""), 10_001))
	}},
	{"PU-39 NextPush", 4, func(ctx context.Context, tx backend.Tx) error { return ask(tx.NextPush(ctx, callers(tx, ""))) }},
	// The first of each of two tenants; the due ones and the lapsed; and the page whole.
	{"PU-39 TakeDuePushes", 40, func(ctx context.Context, tx backend.Tx) error {
		taken, err := tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: callers(tx, ""), Limit: 20, PerGate: 8})
		return some[*backend.Push](11)(taken.Rows, err)
	}},
	{"PU-57 TakeDuePushes by gates", 20, func(ctx context.Context, tx backend.Tx) error {
		taken, err := tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: callers(tx, ""), Limit: 4, PerGate: 1})
		return some[*backend.Push](2)(taken.Rows, err)
	}},
	{"TakeDuePushes of a run", 8, func(ctx context.Context, tx backend.Tx) error {
		taken, err := tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: callers(tx, ""), Limit: 20, PerGate: 8, Only: []backend.RunKey{{Tenant: "globex", ID: "live-1"}}})
		return some[*backend.Push](4)(taken.Rows, err)
	}},
	// Each by its token for its key, and by that.
	{"PushesByToken", 7, func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.Push](3)(tx.PushesByToken(ctx, []int64{0, 1001, 2001, 2002}))
	}},
	{"PushesOfClaim", 7, func(ctx context.Context, tx backend.Tx) error { return ask(tx.PushesOfClaim(ctx, "pod", "r")) }},
	{"PushesOfClaim of nobody", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.PushesOfClaim(ctx, "pod", "s")) }},
	{"ListParkedPushes", 101, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListParkedPushes(ctx, "acme", backend.PushFilter{Gate: "g5"}, push("acme", "live-0", "parked-5"), five))
	}},
	{"LongestParkedPushes", 101, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.LongestParkedPushes(ctx, "acme", backend.PushFilter{}, backend.ParkedPushPosition{}, five))
	}},
	{"PU-39 DuePushRuns", 30, func(ctx context.Context, tx backend.Tx) error { return ask(tx.DuePushRuns(ctx, tx.Now(), 20)) }},
	{"PushLog", 11, func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.PushLogEntry](10)(tx.PushLog(ctx, push("acme", "live-0", "idle-1"), 0, 100, 10))
	}},
	{"PushLogged", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.PushLogged(ctx, push("acme", "live-0", "idle-1"), 1, "e7"))
	}},
	// Those that somebody sends for are passed over, once to find the tenant.
	{"TakeAgedPushes", 12, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.TakeAgedPushes(ctx, tx.Now().Add(-72*time.Hour), 10))
	}},
	{"OldPushLog", 10, func(ctx context.Context, tx backend.Tx) error { return ask(tx.OldPushLog(ctx, tx.Now(), 10)) }},
	{"SW-27 OldPushLog on a quiet tick", 0, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.OldPushLog(ctx, tx.Now().Add(-48*time.Hour), 10))
	}},
	{"LongPushLogs", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.LongPushLogs(ctx, 100, 10)) }},
	{"OldestPushLog", 10, func(ctx context.Context, tx backend.Tx) error {
		return some[backend.PushLogKey](10)(tx.OldestPushLog(ctx, push("acme", "live-0", "idle-1"), 1, 10))
	}},
	{"GonePushes", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.GonePushes(ctx, 10)) }},
	{"Scan of pushes", 20, scan(backend.Pushes, backend.Position{Tenant: "acme", ID: "live-0", Part: "idle-5"})},
	{"Scan of push logs", 10, scan(backend.PushLogs, backend.Position{Tenant: "acme", ID: "live-0", Part: "idle-1", Incarnation: 1, Number: 7})},
	// A run's registrations are a few; these are looked at for the ones that rest.
	{"PU-104 Apply of a wake", 8, func(ctx context.Context, tx backend.Tx) error {
		w := &backend.PushWake{Run: backend.RunKey{Tenant: "globex", ID: "live-1"}, Kinds: 1, Now: tx.Now()}
		return tx.Apply(ctx, &backend.Changes{Wakes: []*backend.PushWake{w}})
	}},
	// Each write looks up what it changes.
	{"Apply of pushes", 12, func(ctx context.Context, tx backend.Tx) error {
		keys := []backend.PushKey{push("globex", "live-5", "due"), push("globex", "live-6", "due"), push("globex", "live-7", "due")}
		rows, err := tx.LockPushes(ctx, keys)
		if err != nil || len(rows) < 3 {
			return err
		}
		rows[keys[0]].Resettled = true
		fresh, damaged := *rows[keys[0]], rows[keys[2]]
		fresh.ID, damaged.Corrupt = "new", rendezvous.ErrCorrupt
		entry := backend.PushLogKey{PushKey: keys[0], Incarnation: 1, No: 1}
		return tx.Apply(ctx, &backend.Changes{
			NewPushes: []*backend.Push{&fresh}, Pushes: []*backend.Push{rows[keys[0]], damaged}, GonePushes: keys[1:2],
			PushLog:     []*backend.PushLogEntry{{PushLogKey: entry, At: tx.Now(), Attempt: rendezvous.PushAttempt{No: 1, Class: rendezvous.ClassFailed}}},
			GonePushLog: []backend.PushLogKey{{PushKey: push("acme", "live-0", "idle-1"), Incarnation: 1, No: 1}},
		})
	}},
}
