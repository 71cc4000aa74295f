package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/wire"
)

// sleep is a run with deadlines and timers, and how it is reopened. What is due is so in a thousand years, or at once.
var sleep = []step{
	{
		"runs.start", `{"workflow_id":"w","run_id":"r1","type":"order","deadline":"2999-01-01T00:00:00.0000001Z"}`,
		`{"workflow_id":"w","run_id":"r1","head_seq":1,"first":true,"status":"running"}`,
	},
	{
		"runs.start", `{"workflow_id":"w","run_id":"r1","type":"order","deadline":"2999-01-01T00:00:00.0000001Z"}`,
		`{"workflow_id":"w","run_id":"r1","head_seq":1,"first":false,"status":"running"}`,
	},
	{
		"runs.history", `{"workflow_id":"w"}`,
		`{"head_seq":1,"more":false,"records":[{"seq":1,"run_id":"r1","kind":"run.started","recorded_at":"<time>",
			"data":{"type":"order","queue":"default","deadline":"2999-01-01T00:00:00.000001Z"}}]}`,
	},
	{"timers.arm", `{"run_id":"r1","timer_id":"nap","fire_at":"2998-01-01T00:00:00.000000001Z","batch_id":"b1"}`, `{"armed_seq":2,"fire_at":"2998-01-01T00:00:00.000001Z"}`},
	{"timers.arm", `{"run_id":"r1","timer_id":"nap","fire_at":"2998-01-01T00:00:00.000000001Z","batch_id":"b1"}`, `{"armed_seq":2,"fire_at":"2998-01-01T00:00:00.000001Z","again":true}`},
	{"timers.arm", `{"run_id":"r1","timer_id":"long","after_ms":3153600000000,"batch_id":"b2"}`, `{"armed_seq":3,"fire_at":"<time>"}`},
	{
		"timers.list", `{"workflow_id":"w"}`,
		`{"timers":[{"run_id":"r1","workflow_id":"w","timer_id":"long","class":"author","fire_at":"<time>","armed_seq":3},
			{"run_id":"r1","workflow_id":"w","timer_id":"nap","class":"author","fire_at":"2998-01-01T00:00:00.000001Z","armed_seq":2},
			{"run_id":"r1","workflow_id":"w","timer_id":"<text>","class":"run","fire_at":"2999-01-01T00:00:00.000001Z","armed_seq":1}]}`,
	},
	{
		"timers.list", `{"run_id":"r1","class":"author","limit":1}`,
		`{"timers":[{"run_id":"r1","workflow_id":"w","timer_id":"long","class":"author","fire_at":"<time>","armed_seq":3}],"next_cursor":"<text>"}`,
	},
	{"timers.list", `{"workflow_id":"nobody"}`, `{"timers":[]}`},
	{"timers.cancel", `{"run_id":"r1","timer_id":"long","batch_id":"b3","reason":"no need"}`, `{"outcome":"cancelled","seq":4}`},
	{"timers.cancel", `{"run_id":"r1","timer_id":"long","batch_id":"b3","reason":"no need"}`, `{"outcome":"cancelled","seq":4,"again":true}`},
	{"timers.cancel", `{"run_id":"r1","timer_id":"never","batch_id":"b4"}`, `{"outcome":"not_armed"}`},
	{
		"runs.await", `{"run_id":"r1","effect":"pay","type":"payment.received","keys":[],"deadline":"2999-01-01T00:00:00Z"}`,
		`{"waiting":true,"seq":5,"number":"<number>"}`,
	},
	{
		"runs.await", `{"run_id":"r1","effect":"pay","type":"payment.received","keys":[],"deadline":"2999-01-01T00:00:00Z"}`,
		`{"waiting":true,"seq":5,"number":"<number>"}`,
	},
	{
		"waits.list", `{"run_id":"r1"}`,
		`{"waits":[{"run_id":"r1","workflow_id":"w","effect":"pay","attempt":1,"type":"payment.received","keys":[],"deadline":"2999-01-01T00:00:00.000000Z","state":"open",
			"attempts":0,"number":"<number>","registered_at":"<time>"}]}`,
	},
	{
		"waits.explain", `{"run_id":"r1","effect":"pay"}`,
		`{"verdict":"no_event","reasons":[],"near_misses":[],"facts":{"number":"<number>","type":"payment.received","registered_at":"<time>",
			"deadline":"2999-01-01T00:00:00.000000Z","since":"<time>","workflow_id":"w"}}`,
	},
	{"waits.register", `{"run_id":"r1","effect":"poll","type":"never.comes","keys":[],"deadline_after_ms":0}`, `{"timed_out":true,"seq":7}`},
	{"waits.register", `{"run_id":"r1","effect":"poll","type":"never.comes","keys":[],"deadline_after_ms":0}`, `{"timed_out":true,"seq":7}`},
	{
		"waits.explain", `{"run_id":"r1","effect":"poll"}`,
		`{"verdict":"timed_out","reasons":[],"near_misses":[],"facts":{"type":"never.comes","registered_at":"<time>","deadline":"<time>","at":"<time>","workflow_id":"w","seq":7}}`,
	},
	{
		"runs.append", `{"run_id":"r1","expected_seq":7,"batch_id":"b5","records":[
			{"kind":"timer.started","data":{"timer_id":"nap","after":3153600000000000}},{"kind":"timer.cancelled","data":{"timer_id":"nap","armed_seq":8}},
			{"kind":"timer.started","data":{"timer_id":"tea","fire_at":"2998-01-01T00:00:00.9999999Z"}},
			{"kind":"wait.registered","effect":"ship","data":{"type":"parcel.sent","keys":[],"deadline_after":3153600000000000}}]}`,
		`{"first_seq":8,"head_seq":11,"answers":[],"requests":[],"mail":0}`,
	},
	{
		"runs.history", `{"workflow_id":"w","from_seq":8}`,
		`{"head_seq":11,"more":false,"records":[
			{"seq":8,"run_id":"r1","batch":"b5","kind":"timer.started","recorded_at":"<time>","data":{"timer_id":"nap","fire_at":"<time>"}},
			{"seq":9,"run_id":"r1","batch":"b5","kind":"timer.cancelled","recorded_at":"<time>","data":{"timer_id":"nap","armed_seq":8}},
			{"seq":10,"run_id":"r1","batch":"b5","kind":"timer.started","recorded_at":"<time>","data":{"timer_id":"tea","fire_at":"2998-01-01T00:00:01.000000Z"}},
			{"seq":11,"run_id":"r1","batch":"b5","kind":"wait.registered","effect":"ship","recorded_at":"<time>","data":{"type":"parcel.sent","keys":[],"deadline":"<time>"}}]}`,
	},
	{
		"runs.get", `{"workflow_id":"w"}`,
		`{"workflow_id":"w","run_id":"r1","type":"order","queue":"default","status":"running","head_seq":11,"shard":"<number>","created_at":"<time>","started_at":"<time>",
			"updated_at":"<time>","open_effects":0,"open_waits":2,"live_timers":4,"lease_epoch":"<number>"}`,
	},
	{
		"runs.conclude", `{"run_id":"r1","expected_seq":11,"batch_id":"b6","outcome":"failed","code":"late","reason":"no stock"}`,
		`{"seq":12,"waits":2,"timers":4,"released":[],"dead":[]}`,
	},
	{"runs.reopen", `{"run_id":"r1","batch_id":"b7","reason":"stock","operator":{"actor":"ann","basis":"asserted"}}`, `{"outcome":"reopened","seq":13,"timers":2}`},
	{"runs.reopen", `{"run_id":"r1","batch_id":"b7","reason":"stock","operator":{"actor":"ann","basis":"asserted"}}`, `{"outcome":"reopened","seq":13,"timers":2,"again":true}`},
	{
		"runs.history", `{"workflow_id":"w","from_seq":13}`,
		`{"head_seq":14,"more":false,"records":[
			{"seq":13,"run_id":"r1","kind":"run.reopened","recorded_at":"<time>","batch":"b7","operator":{"actor":"ann","basis":"asserted"},"data":{"reason":"stock","superseded":[]}},
			{"seq":14,"run_id":"r1","kind":"timer.started","recorded_at":"<time>","batch":"b7","data":{"timer_id":"tea","fire_at":"2998-01-01T00:00:01.000000Z"}}]}`,
	},
	{
		"runs.conclude", `{"run_id":"r1","expected_seq":14,"batch_id":"b8","outcome":"continued_as_new","next":{"run_id":"r2","deadline_after_ms":3153600000000}}`,
		`{"seq":16,"waits":0,"timers":2,"released":[],"dead":[],"next_run":"r2"}`,
	},
	{
		"timers.list", `{"workflow_id":"w"}`,
		`{"timers":[{"run_id":"r2","workflow_id":"w","timer_id":"<text>","class":"run","fire_at":"<time>","armed_seq":16}]}`,
	},
	{"runs.list", `{"filter":{"statuses":["paused"]}}`, `{"runs":[]}`},
	{"shards.list", `{"pool":"timer"}`, `{"shards":"<any>","members":"<any>","now":"<time>"}`},
}

// bare is a service over an empty store whose clock stands, without workers.
func bare(t *testing.T) (bareDoor, store.Store, *clock.Manual) {
	t.Helper()
	now := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s, err := engine.New(memory.Open(now, 4), engine.Options{})
	must(t, err)
	service, err := api.New(api.Config{
		Store: s, Sender: quiet{}, Clock: now, Log: slog.New(slog.DiscardHandler), Tracer: tracenoop.NewTracerProvider().Tracer("test"),
		Meter: metricnoop.NewMeterProvider().Meter("test"), Kind: "memory",
	})
	must(t, err)
	t.Cleanup(func() { must(t, service.Stop(context.Background())); must(t, s.Close()) })
	return bareDoor{service}, s, now
}

// quiet sends nothing.
type quiet struct{}

func (quiet) Try(context.Context, store.Notices) {}

// bareDoor calls a service without a door.
type bareDoor struct{ service *api.Service }

func (bareDoor) name() string { return "bare" }

func (d bareDoor) call(t *testing.T, tenant, verb, body string) reply {
	t.Helper()
	got, err := d.service.Call(t.Context(), tenant, verb, api.Open(), []byte(body))
	status := http.StatusOK
	if err != nil {
		e := wire.ErrorOf(err)
		status, got = wire.Status(e.Code), wire.ErrorBody{Error: *e}
	}
	encoded, err := json.Marshal(got)
	must(t, err)
	return reply{status: status, body: encoded}
}

// A run whose deadline is over may be concluded as timed out by whoever drives it, and is not reopened (RN-50, TM-42).
func TestATimedOutRunIsConcludedFromItsDeadlineOn(t *testing.T) {
	d, _, now := bare(t)
	ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"r","type":"order","deadline_after_ms":60000}`)
	early := refused(t, d, "acme", "runs.conclude", `{"run_id":"r","expected_seq":1,"batch_id":"b","outcome":"timed_out"}`, 400, "invalid")
	if !strings.Contains(string(early.body), "2026-01-01T00:01:00") {
		t.Errorf("does not say when it may be: %s", early.body)
	}
	now.Advance(time.Minute)
	refused(t, d, "acme", "runs.conclude", `{"run_id":"r","expected_seq":1,"batch_id":"b2","outcome":"timed_out","result":{"data":1}}`, 400, "invalid")
	match(t, `{"seq":2,"waits":0,"timers":1,"released":[],"dead":[]}`, ok(t, d, "acme", "runs.conclude", `{"run_id":"r","expected_seq":1,"batch_id":"b","outcome":"timed_out"}`))
	match(t, `{"records":[{"seq":2,"run_id":"r","kind":"run.timed_out","recorded_at":"<time>","batch":"b","data":{"deadline":"2026-01-01T00:01:00.000000Z"}}],"head_seq":2,"more":false}`,
		ok(t, d, "acme", "runs.history", `{"workflow_id":"w","from_seq":2}`))
	refused(t, d, "acme", "runs.reopen", `{"run_id":"r","batch_id":"b3"}`, 409, "conflict")
}

// What is over and not recorded is told by rows: a wait as overdue, timers as due.
func TestWhatIsDueIsShown(t *testing.T) {
	d, _, now := bare(t)
	ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"r","type":"order"}`)
	ok(t, d, "acme", "timers.arm", `{"run_id":"r","timer_id":"nap","after_ms":1000,"batch_id":"b"}`)
	ok(t, d, "acme", "runs.await", `{"run_id":"r","effect":"pay","type":"paid","keys":[],"deadline_after_ms":1000}`)
	now.Advance(time.Minute)
	match(t, `{"verdict":"overdue","reasons":[],"near_misses":[],"facts":{"number":"<number>","type":"paid","registered_at":"<time>","deadline":"2026-01-01T00:00:01.000000Z",
		"since":"2026-01-01T00:00:01.000000Z","workflow_id":"w","hold":{"state":"timer_lag","attempts":0,"next_attempt_at":"2026-01-01T00:00:01.000000Z"}}}`,
		ok(t, d, "acme", "waits.explain", `{"run_id":"r","effect":"pay"}`))
	match(t, `{"version":"","go":"<text>","store":"memory","tenant":"acme","now":"<time>","depths":{"live_events":0,"open_waits":1,"parked_waits":0,"quarantined_waits":0,"woken":1,
		"timers":2,"due_timers":2,"due_pushes":0,"failing_pushes":0,"parked_pushes":0,"dead_letters":0,"oldest_woken":"<time>","oldest_due_timer":"2026-01-01T00:00:01.000000Z"}}`, ok(t, d, "acme", "system.info", ""))
	match(t, `{"armed_seq":4,"fire_at":"1970-01-01T00:00:00.000000Z"}`, // past ones are legal
		ok(t, d, "acme", "timers.arm", `{"run_id":"r","timer_id":"past","fire_at":"1970-01-01T00:00:00Z","batch_id":"b2"}`))
	match(t, `{"armed_seq":5,"fire_at":"0001-01-01T00:00:00.000001Z"}`,
		ok(t, d, "acme", "timers.arm", `{"run_id":"r","timer_id":"first","fire_at":"0001-01-01T00:00:00Z","batch_id":"b3"}`))
	match(t, `{"armed_seq":6,"fire_at":"9999-12-31T23:59:59.999999Z"}`,
		ok(t, d, "acme", "timers.arm", `{"run_id":"r","timer_id":"last","fire_at":"9999-12-31T23:59:59.999998001Z","batch_id":"b4"}`))
}

// What is too long names what is given and what may be.
func TestDurationsOutsideNameValueAndLimit(t *testing.T) {
	d, _, _ := bare(t)
	for body, details := range map[string]string{
		`{"run_id":"r","timer_id":"t","batch_id":"b","after_ms":3153600000001}`: `{"field":"after_ms","value":3153600000001,"limit":3153600000000}`,
		`{"run_id":"r","timer_id":"t","batch_id":"b","after_ms":-1}`:            `{"field":"after_ms","value":-1,"limit":3153600000000}`,
	} {
		match(t, `{"error":{"code":"invalid","message":"<text>","details":`+details+`}}`, d.call(t, "acme", "timers.arm", body).body)
	}
}

// SH-16: the list names who owns what, and who is there; a pool that nobody joined shows when it is asked for.
func TestShardsListNamesOwnersAndMembers(t *testing.T) {
	d, s, _ := bare(t)
	free := func(pool string, shard int) string {
		return fmt.Sprintf(`{"pool":%q,"shard":%d,"epoch":0}`, pool, shard)
	}
	match(t, `{"shards":[`+free("timer", 0)+`,`+free("timer", 1)+`,`+free("timer", 2)+`,`+free("timer", 3)+`],"members":[],"now":"2026-01-01T00:00:00.000000Z"}`,
		ok(t, d, "acme", "shards.list", ``))
	pod, err := s.PoolHandle(store.PoolTimer, "pod-a/7f3c")
	must(t, err)
	won, err := pod.AcquireOwnedShard(t.Context(), 2, 3*time.Second)
	must(t, err)
	must(t, pod.PublishShardOwner(t.Context(), 2, won.Epoch, "10.0.0.7:7481"))
	_, err = pod.RenewOwnedShards(t.Context(), []store.ShardEpoch{{Shard: 2, Epoch: won.Epoch}}, 3*time.Second, store.Member{Address: "10.0.0.7:7481", Draining: true})
	must(t, err)
	match(t, `{"shards":[`+free("timer", 0)+`,`+free("timer", 1)+`,
		{"pool":"timer","shard":2,"owner":"pod-a/7f3c","epoch":1,"expires_at":"2026-01-01T00:00:03.000000Z","remaining_ms":3000,"serving":true,"address":"10.0.0.7:7481"},`+free("timer", 3)+`],
		"members":[{"pool":"timer","incarnation":"pod-a/7f3c","address":"10.0.0.7:7481","started_at?":"<time>","draining":true,"expires_at":"<time>"}],"now":"<time>"}`,
		ok(t, d, "acme", "shards.list", `{}`))
	match(t, `{"shards":[`+free("sweep", 0)+`,`+free("sweep", 1)+`,`+free("sweep", 2)+`,`+free("sweep", 3)+`],"members":[],"now":"<time>"}`,
		ok(t, d, "acme", "shards.list", `{"pool":"sweep"}`))
	other, err := s.PoolHandle(store.PoolSweep, "pod-b/1")
	must(t, err)
	_, err = other.AcquireOwnedShard(t.Context(), 0, 3*time.Second)
	must(t, err)
	var all wire.ShardList
	must(t, json.Unmarshal(ok(t, d, "acme", "shards.list", ``), &all))
	if len(all.Shards) != 8 || all.Shards[4].Owner != "pod-b/1" {
		t.Errorf("both pools: %+v", all.Shards)
	}
	refused(t, d, "acme", "shards.list", `{"pool":"swim"}`, 400, "invalid")
}

// A long poll looks at growing pauses, and ends when the process goes down, answering what there is.
func TestALongPollEndsWithItsTimeOrItsProcess(t *testing.T) {
	d, s, now := bare(t)
	ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"r","type":"order"}`)
	poll := func() <-chan reply {
		got := make(chan reply, 1)
		go func() { got <- d.call(t, "acme", "runs.history", `{"workflow_id":"w","from_seq":2,"wait_ms":30000}`) }()
		now.Waiting(1)
		return got
	}
	const nothing = `{"records":[],"head_seq":1,"more":false}`
	got := poll()
	now.Advance(30 * time.Second)
	match(t, nothing, (<-got).body)

	got = poll()
	tenant, err := s.Tenant("acme")
	must(t, err)
	_, err = tenant.PauseRun(t.Context(), "r", &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}, "", time.Time{})
	must(t, err)
	now.Advance(25 * time.Millisecond)
	match(t, `{"records":[{"seq":2,"run_id":"r","kind":"run.paused","operator":"<any>","recorded_at":"<time>","data?":"<any>"}],"head_seq":2,"more":false}`, (<-got).body)

	ended := make(chan reply, 1)
	go func() { ended <- d.call(t, "acme", "runs.history", `{"workflow_id":"w","from_seq":3,"wait_ms":30000}`) }()
	now.Waiting(1)
	d.service.EndPolls()
	match(t, `{"records":[],"head_seq":2,"more":false}`, (<-ended).body)
	match(t, `{"records":[],"head_seq":2,"more":false}`, ok(t, d, "acme", "runs.history", `{"workflow_id":"w","from_seq":3,"wait_ms":30000}`))
}
