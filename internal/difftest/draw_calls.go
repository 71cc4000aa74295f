package difftest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// The kinds of steps, by role, and how often each is drawn.

var eventChoices = []choice{
	{10, func(d drawer) Step {
		return BufferBatch{Items: list(d, 4, func() Put { return Put{d.tenant(), d.event()} }), At: d.at()}
	}},
	{4, func(d drawer) Step { return Buffer{d.tenant(), d.event(), d.at()} }},
	{6, func(d drawer) Step {
		f := d.flow()
		return DeliverTo{f.tenant, f.run, d.event(), d.chance(2), d.at()}
	}},
	{3, func(d drawer) Step {
		return DeliverToBatch{Items: list(d, 4, func() Targeted {
			f := d.flow()
			return Targeted{f.tenant, f.run, d.event(), d.chance(2)}
		}), At: d.at()}
	}},
	{4, func(d drawer) Step { n := d.name(); return MatchWaiter{n.Tenant, n.Source, n.ID, d.at()} }},
	{3, func(d drawer) Step {
		n := d.name()
		return ErasePayload{n.Tenant, n.Source, n.ID, one(d, people), d.at()}
	}},
	{1, func(d drawer) Step { n := d.name(); return LookupEvent{n.Tenant, n.Source, n.ID, d.chance(2)} }},
	{1, func(d drawer) Step { return Minter(d.name()) }},
}

func (d drawer) event() Event {
	e := Event{Source: one(d, sources), ID: one(d, ids), Type: one(d, kinds), Keys: some(d, 3, matchKeys), Payload: one(d, payloads)}
	if d.chance(3) {
		e.Trace, e.ContentType = "00-"+e.ID, "application/json"
	}
	if d.chance(6) {
		e.Expires = d.w.now + one(d, []time.Duration{5 * time.Second, time.Minute, -time.Second, 31 * 24 * time.Hour})
	}
	if d.chance(20) {
		e.Source, e.Type = "rendezvous:x", "rendezvous.x"
		e.Minter = one(d, people)
	}
	return e
}

var waitChoices = []choice{
	{8, func(d drawer) Step { t, w := d.wait(); return RegisterWait{t, w, d.at()} }},
	{4, func(d drawer) Step { t, w := d.wait(); return Subscribe{t, w, d.at()} }},
	{5, func(d drawer) Step {
		return RegisterBatch{Items: list(d, 4, func() Listen { t, w := d.wait(); return Listen{t, w} }), At: d.at()}
	}},
	{4, func(d drawer) Step { h := d.held(false); return ClaimFor{h.Tenant, h.Run, h.Effect, d.at()} }},
	{3, func(d drawer) Step {
		h := d.held(d.chance(2))
		return Unsubscribe{h.Tenant, h.Run, h.Effect, d.epoch(h), one(d, []string{"", "why", "é\nx"}), d.at()}
	}},
	{1, func(d drawer) Step {
		f := d.flow()
		return UnsubscribeRun{f.tenant, f.run, f.epoch, some(d, 2, waits), d.at()}
	}},
	{10, func(d drawer) Step { return OfferBatch{Items: list(d, 6, d.offer), At: d.at()} }},
	{5, func(d drawer) Step {
		return DeliverParked{Items: list(d, 4, func() Held { return d.held(true) }), At: d.at()}
	}},
	{5, func(d drawer) Step { return ParkWait{Items: list(d, 3, d.park), At: d.at()} }},
	{1, func(d drawer) Step { // what takes many failures
		p := d.park()
		p.Cause, p.Take = "failed", 0
		items := make([]Park, rendezvous.QuarantineAfter)
		for i := range items {
			items[i] = p
		}
		return ParkWait{Items: items}
	}},
	{4, func(d drawer) Step {
		return TakeParked{d.limit(), one(d, []time.Duration{0, time.Second, time.Minute})}
	}},
	{2, func(d drawer) Step { h := d.held(true); return RetryWait{h.Tenant, h.Run, h.Effect, one(d, people)} }},
}

// wait is a wait of a run, or one that is registered already, as it is.
func (d drawer) wait() (string, Wait) {
	f := d.flow()
	w := Wait{Run: f.run, Effect: one(d, waits), Type: one(d, kinds), Keys: some(d, 3, matchKeys), Epoch: f.epoch}
	if rows := d.rows(f.tenant); len(rows) > 0 && d.chance(4) {
		r := one(d, rows)
		w = Wait{Run: d.role(r.RunID), Effect: r.Effect, Type: r.Type, From: r.From, Attempt: r.Attempt, Epoch: d.epoch(Held{f.tenant, r.RunID, r.Effect})}
		for _, k := range r.Keys {
			w.Keys = append(w.Keys, k.String())
		}
		return f.tenant, w
	}
	if d.chance(5) {
		w.From = one(d, sources)
	}
	if d.chance(3) {
		w.Trace = "01-" + w.Effect
	}
	w.Attempt = d.rare(10)
	return f.tenant, w
}

// epoch is the one under which a wait's run is driven, mostly.
func (d drawer) epoch(h Held) int64 {
	for _, f := range d.flows(h.Tenant) {
		if d.role(f.RunID) == h.Run && f.LeaseOwner != "" && !d.chance(8) {
			return f.LeaseEpoch
		}
	}
	return 0
}

func (d drawer) offer() Offer {
	if d.chance(3) {
		h := d.held(false)
		return Offer{Tenant: h.Tenant, Run: h.Run, Effect: h.Effect}
	}
	n := d.name()
	return Offer{Tenant: n.Tenant, Source: n.Source, ID: n.ID}
}

func (d drawer) park() Park {
	h, take := d.held(true), 0
	if taken := d.w.known.taken; len(taken) > 0 && d.chance(2) {
		take = len(taken) - d.n(0, len(taken)-1)
		h = taken[take-1]
	}
	return Park{h.Tenant, h.Run, h.Effect, one(d, []string{"leased", "failed"}), one(d, []time.Duration{0, time.Second, time.Minute}), one(d, people), take}
}

var runChoices = []choice{
	{8, func(d drawer) Step { return d.start() }},
	{14, func(d drawer) Step { return d.append() }},
	{3, func(d drawer) Step { return d.conclude() }},
	{2, func(d drawer) Step {
		f := d.flow()
		return ContinueAsNew{
			Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: one(d, batches), Next: one(d, append([]string{"r8", ""}, runs...)),
			Input: one(d, payloads), Type: one(d, []string{"", "Order"}), Queue: one(d, queues), Operator: one(d, people), At: d.at(),
		}
	}},
	{2, func(d drawer) Step {
		f := d.flow()
		return CancelRun{f.tenant, f.run, one(d, people), one(d, []string{"", "why"}), d.chance(3), d.at()}
	}},
	{3, func(d drawer) Step {
		f := d.flow()
		return PauseRun{f.tenant, f.run, one(d, people), one(d, []string{"", "why"}), d.at()}
	}},
	{3, func(d drawer) Step { f := d.flow(); return ResumeRun{f.tenant, f.run, one(d, people), "", d.at()} }},
}

func (d drawer) start() Step {
	s := StartRun{
		Tenant: d.tenant(), Workflow: one(d, workflows), Run: one(d, runs), Type: one(d, []string{"order", "Order"}), Queue: one(d, queues),
		Input: one(d, payloads), Operator: one(d, people), At: d.at(),
	}
	if d.chance(10) {
		s.Run = ""
	}
	if d.chance(20) {
		s.Workflow = ""
	}
	if d.chance(4) {
		s.Parent, s.CodeVersion, s.ContentType = one(d, workflows), "v1", "text/plain"
	}
	return s
}

func (d drawer) append() Step {
	f := d.flow()
	a := Append{Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: one(d, batches), At: d.at()}
	if d.chance(15) {
		a.Workflow, a.Run, a.Epoch, a.Expected = one(d, workflows), one(d, runs), 0, 0
		a.Records = append(a.Records, Record{Kind: "run.started", Data: `{"type":"order","queue":"fast"}`, Payload: one(d, payloads)})
	}
	for range d.n(0, 4) {
		a.Records = append(a.Records, d.record(f))
	}
	switch d.n(1, 20) {
	case 20:
		a.Records = append(a.Records, Record{Kind: "run.paused", Operator: one(d, people)})
	case 19:
		a.Records = append(a.Records, Record{Kind: "run.completed", Payload: one(d, payloads)})
	case 18:
		a.Records = append(a.Records, Record{Kind: "run.failed", Data: `{"code":"x","reason":"é","failed_effect":"e1"}`})
	case 17:
		a.Records = append(a.Records, d.successor(f)...)
	case 16:
		a.Records = append(a.Records, Record{Kind: "run.resumed"})
	}
	return a
}

// record is a record of chance, more or less in order.
func (d drawer) record(f flow) Record {
	r := Record{Effect: one(d, effects)}
	switch d.n(0, 9) {
	case 0, 1, 2:
		r.Kind, r.Data, r.Payload = "effect.started", `{"name":"charge"}`, one(d, payloads)
	case 3, 4:
		r.Kind, r.Payload = "effect.done", one(d, payloads)
	case 5:
		r.Kind, r.Data = "effect.failed", fmt.Sprintf(`{"code":"c","reason":"r","retryable":%v}`, d.chance(2))
	case 6:
		return Record{Kind: "note", Data: one(d, []string{`{"name":"n"}`, `{"name":"n","b":[1,2.50,"\u0000"],"a":null}`, `{"name":""}`, `{`}), Payload: one(d, payloads)}
	case 7:
		r.Effect, r.Kind = one(d, waits), "wait.registered"
		r.Data = fmt.Sprintf(`{"type":%q,"keys":[{"namespace":"o","value":"%d"}]}`, one(d, kinds), d.n(1, 2))
	case 8:
		r.Effect, r.Kind = d.held(false).Effect, "wait.withdrawn"
	default:
		return d.answered(f)
	}
	r.Attempt = d.rare(6)
	return r
}

// answered is mostly the answer that a wait of the run is owed.
func (d drawer) answered(f flow) Record {
	r := Record{Kind: "wait.answered", Effect: one(d, waits)}
	n := d.name()
	for _, row := range d.rows(f.tenant) {
		if row.Held != nil && row.RunID == f.RunID {
			r.Effect, n.Source, n.ID = row.Effect, row.Held.Source, row.Held.ID
		}
	}
	r.Data = fmt.Sprintf(`{"event_source":%q,"event_id":%q,"event_type":"paid"}`, n.Source, n.ID)
	return r
}

// successor are the two records that continue a run.
func (d drawer) successor(f flow) []Record {
	next := one(d, runs)
	return []Record{
		{Kind: "run.continued", Data: fmt.Sprintf(`{"next_run":%q}`, next)},
		{Kind: "run.started", Run: next, Data: fmt.Sprintf(`{"type":"order","queue":"Fast","previous_run":%q}`, f.run)},
	}
}

func (d drawer) conclude() Step {
	f := d.flow()
	c := Conclude{
		Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: one(d, batches), Outcome: one(d, []string{"completed", "failed", "cancelled"}),
		Operator: one(d, people), At: d.at(),
	}
	switch c.Outcome {
	case "completed":
		c.Result = one(d, payloads)
	case "failed":
		c.Code, c.Reason, c.Result = "broken", "é", one(d, payloads)
	default:
		c.Reason = one(d, []string{"", "why"})
	}
	return c
}

var leaseChoices = []choice{
	{9, func(d drawer) Step {
		f := d.flow()
		return AcquireLease{f.tenant, f.run, one(d, owners), one(d, ttls), one(d, []string{"k1", "k2", "k3"})}
	}},
	{2, func(d drawer) Step {
		f := d.flow()
		owner := f.LeaseOwner
		if owner == "" || d.chance(6) {
			owner = one(d, owners)
		}
		return RenewLease{f.tenant, f.run, owner, f.epoch, one(d, ttls)}
	}},
	{4, func(d drawer) Step { f := d.flow(); return Collect{f.tenant, f.run, f.epoch} }},
	{5, func(d drawer) Step { f := d.flow(); return Suspend{f.tenant, f.run, f.epoch, f.head, d.chance(2)} }},
	{3, func(d drawer) Step { f := d.flow(); return ReleaseLease{f.tenant, f.run, f.epoch} }},
	{3, func(d drawer) Step { return d.reclaim() }},
	{3, func(d drawer) Step {
		if len(d.w.vague) > 0 {
			return TakeWoken{}
		}
		return TakeWoken{d.limit()}
	}},
	{8, func(d drawer) Step {
		return Advance{one(d, []time.Duration{
			time.Microsecond, time.Second, 3 * time.Second, 10 * time.Second, 40 * time.Second, 2 * time.Hour, -time.Second, -time.Microsecond,
		})}
	}},
}

var ttls = []time.Duration{30 * time.Second, 2 * time.Second, 5 * time.Second, time.Hour, time.Second}

// reclaim names leases as they were seen, expired ones mostly.
func (d drawer) reclaim() Step {
	rows, _, err := d.w.sides[0].plain.AbandonedRuns(ctx, rendezvous.MaxList, "")
	if err != nil {
		d.Fatalf("look at abandoned runs: %v", err)
	}
	var items []Reclaim
	for _, r := range rows {
		items = append(items, Reclaim{r.Tenant, d.role(r.WorkflowID), r.Epoch, r.ExpiresAt.Sub(Base)})
	}
	if f := d.flow(); len(items) == 0 || d.chance(5) {
		items = append(items, Reclaim{f.tenant, f.workflow, f.epoch, d.w.now + time.Second})
	}
	return ReclaimRun{list(d, 3, func() Reclaim { return one(d, items) })}
}

var listChoices = []choice{
	{3, func(d drawer) Step {
		w := Waiting{Tenant: d.tenant(), Limit: d.limit(), Cursor: d.cursor()}
		w.Run, w.Type, w.Key, w.State = d.waitFilter()
		return w
	}},
	{3, func(d drawer) Step {
		w := ParkedWaits{Tenant: d.tenant(), Limit: d.limit(), Cursor: d.cursor()}
		w.Run, w.Type, w.Key, w.State = d.waitFilter()
		return w
	}},
	{1, func(d drawer) Step { return QuarantinedWaits{d.tenant(), d.limit(), d.cursor()} }},
	{5, func(d drawer) Step {
		return QueryWorkflows{
			Tenant: d.tenant(), Types: some(d, 2, []string{"order", "Order"}), Statuses: some(d, 2, []string{"running", "paused", "completed", "cancelled"}),
			Queues: some(d, 2, []string{"default", "fast", "Fast"}), Prefix: one(d, []string{"", "w", "W", "w_", "é", "%"}),
			Limit: d.limit(), Cursor: d.cursor(), Most: d.n(0, 2),
		}
	}},
	{1, func(d drawer) Step { f := d.flow(); return ReadHistory{f.tenant, f.workflow} }},
	{1, func(d drawer) Step {
		f := d.flow()
		return ReadHistoryFrom{f.tenant, f.workflow, f.head - int64(d.n(0, 3)), d.limit()}
	}},
	{1, func(d drawer) Step {
		f := d.flow()
		return ReadRunChain{f.tenant, f.workflow, int64(d.rare(2)), d.limit()}
	}},
	{1, func(d drawer) Step {
		f := d.flow()
		return DescribeWorkflow{f.tenant, one(d, []string{f.workflow, ""}), one(d, []string{"", f.run})}
	}},
	{1, func(d drawer) Step { return AbandonedRuns{d.limit(), d.cursor()} }},
	{3, func(d drawer) Step {
		return TakeUnmet{one(d, []time.Duration{0, 2 * time.Second}), one(d, []time.Duration{0, time.Second}), d.limit()}
	}},
	{1, func(d drawer) Step { return Depths{} }},
	{1, func(d drawer) Step { return Look{Events: d.w.known.events} }},
}

func (d drawer) waitFilter() (run, kind, k, state string) {
	if d.chance(3) {
		run = d.flow().run
	}
	if d.chance(3) {
		kind = one(d, kinds)
	}
	if d.chance(3) {
		k = one(d, matchKeys)
	}
	if d.chance(3) {
		state = one(d, []string{"open", "parked", "quarantined"})
	}
	return run, kind, k, state
}
