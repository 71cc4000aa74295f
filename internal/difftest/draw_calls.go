package difftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// The kinds of steps, by role, and how often each is drawn.

var eventChoices = []choice{
	{10, func(d drawer) Step {
		return BufferBatch{Items: list(d, 4, func() Put { t := d.tenant(); return Put{t, d.eventFor(t, "")} }), At: d.at()}
	}},
	{4, func(d drawer) Step { t := d.tenant(); return Buffer{t, d.eventFor(t, ""), d.at()} }},
	{6, func(d drawer) Step {
		f := d.flow()
		return DeliverTo{f.tenant, f.run, d.eventFor(f.tenant, f.run), d.chance(2), d.at()}
	}},
	{3, func(d drawer) Step {
		return DeliverToBatch{Items: list(d, 4, func() Targeted {
			f := d.flow()
			return Targeted{f.tenant, f.run, d.eventFor(f.tenant, f.run), d.chance(2)}
		}), At: d.at()}
	}},
	{4, func(d drawer) Step { n := d.name(); return MatchWaiter{n.Tenant, n.Source, n.ID, d.at()} }},
	{3, func(d drawer) Step {
		n := d.name()
		return ErasePayload{n.Tenant, n.Source, n.ID, one(d, people), d.at()}
	}},
	{3, func(d drawer) Step { return ExplainEvent(d.name()) }},
	{2, func(d drawer) Step {
		n, h := d.name(), d.held(d.chance(2))
		return ExplainPair{n.Tenant, n.Source, n.ID, h.Run, h.Effect}
	}},
	{1, func(d drawer) Step { n := d.name(); return LookupEvent{n.Tenant, n.Source, n.ID, d.chance(2)} }},
	{1, func(d drawer) Step { return Minter(d.name()) }},
}

// eventFor is rather one that an open wait of the tenant, or of its run, waits for.
func (d drawer) eventFor(tenant, run string) Event {
	e := d.event()
	open := slices.DeleteFunc(d.rows(tenant), func(r store.WaitRow) bool {
		return r.Held != nil || len(r.Keys) == 0 || run != "" && d.w.role(r.RunID) != run
	})
	if len(open) == 0 || d.chance(3) {
		return e
	}
	of := one(d, open)
	if e.Type, e.Keys = of.Type, append(e.Keys, one(d, of.Keys).String()); of.From != "" {
		e.Source = of.From
	}
	return e
}

func (d drawer) event() Event {
	e := Event{Source: one(d, sources), ID: one(d, ids), Type: one(d, kinds), Keys: few(d, 3, matchKeys), Payload: one(d, payloads)}
	if !d.chance(4) {
		e.ID = fmt.Sprint(len(d.w.known.events), "-", d.n(1, 2))
	}
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
	{6, func(d drawer) Step { t, w := d.wait(); return Subscribe{t, w, d.at()} }},
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
	{3, func(d drawer) Step { return ExplainWait(d.held(d.chance(2))) }},
	{2, func(d drawer) Step { h := d.held(true); return RetryWait{h.Tenant, h.Run, h.Effect, one(d, people)} }},
}

// wait is a wait of a run, or one that is registered already, as it is.
func (d drawer) wait() (string, Wait) {
	f := d.flow()
	w := Wait{Run: f.run, Effect: one(d, waits), Type: one(d, kinds), Keys: few(d, 3, matchKeys), Epoch: f.epoch}
	if rows := d.rows(f.tenant); len(rows) > 0 && d.chance(4) {
		r := one(d, rows)
		w = Wait{Run: d.w.role(r.RunID), Effect: r.Effect, Type: r.Type, From: r.From, Attempt: r.Attempt, Epoch: d.epoch(Held{f.tenant, r.RunID, r.Effect})}
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
		if d.w.role(f.RunID) == h.Run && f.LeaseOwner != "" && !d.chance(8) {
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
	{6, func(d drawer) Step { return d.start() }},
	{14, func(d drawer) Step { return d.append() }},
	{2, func(d drawer) Step { return d.conclude() }},
	{2, func(d drawer) Step {
		f := d.flow()
		return ContinueAsNew{
			Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: d.batch(), Next: one(d, append([]string{"r8", ""}, runs...)),
			Input: one(d, payloads), Type: one(d, []string{"", "Order"}), Queue: one(d, queues), Operator: one(d, people), At: d.at(),
		}
	}},
	{2, func(d drawer) Step {
		f := d.flow()
		return CancelRun{f.tenant, f.run, one(d, people), one(d, []string{"", "why"}), d.chance(4), d.at()}
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
	a := Append{Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: d.batch(), At: d.at()}
	if d.chance(15) {
		a.Workflow, a.Run, a.Epoch, a.Expected = one(d, workflows), one(d, runs), 0, 0
		a.Records = append(a.Records, Record{Kind: "run.started", Data: `{"type":"order","queue":"fast"}`, Payload: one(d, payloads)})
	}
	for range d.n(0, d.n(1, 4)) {
		a.Records = append(a.Records, d.record(f))
	}
	if d.chance(12) {
		a.Records = d.failing()
	}
	switch d.n(1, 40) {
	case 20:
		a.Records = append(a.Records, Record{Kind: "run.paused", Operator: one(d, people)})
	case 19:
		a.Records = append(a.Records, Record{Kind: "run.completed", Payload: one(d, payloads)})
	case 18:
		a.Records = append(a.Records, Record{Kind: "run.failed", Data: `{"code":"x","reason":"é","failed_effect":"e1"}`})
	case 17:
		a.Records = append(a.Records, d.successor(f)...)
	case 15, 16:
		a.Records = append(a.Records, Record{Kind: "run.resumed"})
	}
	return a
}

// record is a record of chance, more or less in order.
func (d drawer) record(f flow) Record {
	r := Record{Effect: one(d, effects)}
	begun := d.begun(f)
	switch d.n(0, 11) {
	case 0, 1, 2:
		r.Kind, r.Data, r.Payload = "effect.started", `{"name":"charge"}`, one(d, payloads)
	case 3, 4:
		r.Kind, r.Payload = "effect.done", one(d, payloads)
		r.Effect = one(d, append(begun, r.Effect))
	case 5:
		r.Effect = one(d, append(begun, r.Effect))
		r.Kind, r.Data = "effect.failed", fmt.Sprintf(`{"code":"c","reason":"r","retryable":%v}`, d.chance(2))
	case 6:
		r = Record{Kind: "note", Data: one(d, []string{`{"name":"n"}`, `{"name":"n","b":[1,2.50,"\u0000"],"a":null}`}), Payload: one(d, payloads)}
		if d.chance(8) {
			r.Data = one(d, []string{`{"name":""}`, `{`, `{"name":"\ud800"}`, `{"name":"n","name":"m"}`})
		}
		return r
	case 7:
		r.Effect, r.Kind = one(d, waits), "wait.registered"
		r.Data = fmt.Sprintf(`{"type":%q,"keys":[{"namespace":"o","value":"%d"}]}`, one(d, kinds), d.n(1, 2))
	case 8:
		r.Effect, r.Kind = d.waitOf(f, false), "wait.withdrawn"
	case 9:
		return d.answered(f)
	default:
		r.Kind, r.Data = "effect.started", `{"name":"charge"}`
	}
	r.Attempt = d.rare(10)
	return r
}

// failing are effects that failed, one after the other: which of them was the last that nothing made good is a question of its own.
func (d drawer) failing() []Record {
	var records []Record
	for _, effect := range effects[d.n(0, 3):][:d.n(2, 4)] {
		records = append(records,
			Record{Kind: "effect.started", Effect: effect, Data: `{"name":"charge"}`},
			Record{Kind: "effect.failed", Effect: effect, Data: fmt.Sprintf(`{"code":"c","reason":"r","retryable":%v}`, d.chance(3))})
	}
	if d.chance(3) {
		records = append(records, Record{Kind: "run.failed", Data: `{"code":"x","reason":"é"}`})
	}
	return records
}

// begun are the effects of the run that are open.
func (d drawer) begun(f flow) []string {
	records, err := d.w.look(f.tenant).ReadHistory(ctx, f.WorkflowID)
	if f.WorkflowID == "" || err != nil {
		return nil
	}
	var open []string
	for _, r := range records {
		switch {
		case r.RunID != f.RunID || r.Kind.IsWait():
		case r.Kind == rendezvous.EffectStarted:
			open = append(open, r.Effect)
		case r.Kind.Phase() == rendezvous.PhaseClose:
			open = slices.DeleteFunc(open, func(e string) bool { return e == r.Effect })
		}
	}
	return open
}

// answered is mostly the answer that a wait of the run is owed.
func (d drawer) answered(f flow) Record {
	r := Record{Kind: "wait.answered", Effect: d.waitOf(f, true)}
	n := d.name()
	for _, row := range d.rows(f.tenant) {
		if row.Held != nil && row.RunID == f.RunID && row.Effect == r.Effect {
			n.Source, n.ID = row.Held.Source, row.Held.ID
		}
	}
	r.Data = fmt.Sprintf(`{"event_source":%q,"event_id":%q,"event_type":"paid"}`, n.Source, n.ID)
	return r
}

// waitOf is mostly a wait of the run, one that holds an event where that is asked.
func (d drawer) waitOf(f flow, held bool) string {
	rows := slices.DeleteFunc(d.rows(f.tenant), func(r store.WaitRow) bool { return r.RunID != f.RunID || held && r.Held == nil })
	if len(rows) == 0 || d.chance(10) {
		return one(d, waits)
	}
	return one(d, rows).Effect
}

// batch is mostly an id that nothing had before.
func (d drawer) batch() string {
	if d.chance(4) {
		return one(d, batches)
	}
	return fmt.Sprint("n", len(d.w.steps))
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
		Tenant: f.tenant, Run: f.run, Epoch: f.epoch, Expected: f.head, Batch: d.batch(), Outcome: one(d, []string{"completed", "failed", "cancelled"}),
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
	{6, func(d drawer) Step { return d.acquire(d.flow()) }},
	{2, func(d drawer) Step {
		f, ok := d.driven()
		if !ok {
			return d.acquire(f)
		}
		owner := f.LeaseOwner
		if owner == "" || d.chance(6) {
			owner = one(d, owners)
		}
		return RenewLease{f.tenant, f.run, owner, f.epoch, one(d, ttls)}
	}},
	{4, func(d drawer) Step {
		f, ok := d.driven()
		if !ok {
			return d.acquire(f)
		}
		return Collect{f.tenant, f.run, f.epoch}
	}},
	{4, func(d drawer) Step {
		f, ok := d.driven()
		if !ok {
			return d.acquire(f)
		}
		return Suspend{f.tenant, f.run, f.epoch, f.head, d.chance(2)}
	}},
	{2, func(d drawer) Step {
		f, ok := d.driven()
		if !ok {
			return d.acquire(f)
		}
		return ReleaseLease{f.tenant, f.run, f.epoch}
	}},
	{2, func(d drawer) Step { return d.reclaim() }},
	{2, func(d drawer) Step { return SweepLeases{} }},
	{3, func(d drawer) Step { return SweepParked{d.limit()} }},
	{3, func(d drawer) Step { return SweepUnmet{d.limit()} }},
	{3, func(d drawer) Step {
		if len(d.w.vague) > 0 {
			return TakeWoken{}
		}
		return TakeWoken{d.limit()}
	}},
	{8, func(d drawer) Step {
		soon := slices.DeleteFunc(slices.Clone(d.w.known.due), func(at time.Duration) bool { return at <= d.w.now })
		if len(soon) > 0 && d.chance(2) {
			return Advance{one(d, soon) - d.w.now - time.Duration(d.rare(4))*time.Microsecond}
		}
		return Advance{one(d, []time.Duration{
			time.Microsecond, time.Second, time.Second, 3 * time.Second, 10 * time.Second, 10 * time.Second, 40 * time.Second, 2 * time.Hour,
			-time.Second, -time.Microsecond,
		})}
	}},
}

func (d drawer) acquire(f flow) Step {
	return AcquireLease{f.tenant, f.run, one(d, owners), one(d, ttls), one(d, []string{"k1", "k2", "k3"})}
}

var ttls = []time.Duration{30 * time.Second, 30 * time.Second, 2 * time.Second, 5 * time.Second, time.Hour, time.Hour, time.Second}

// reclaim names leases as they were seen, expired ones mostly.
func (d drawer) reclaim() Step {
	rows, _, err := d.w.sides[0].plain.AbandonedRuns(ctx, rendezvous.MaxList, "")
	if err != nil {
		d.Fatalf("look at abandoned runs: %v", err)
	}
	var items []Reclaim
	for _, r := range rows {
		items = append(items, Reclaim{r.Tenant, d.w.role(r.WorkflowID), r.Epoch, r.ExpiresAt.Sub(Base)})
	}
	if f := d.flow(); len(items) == 0 || d.chance(5) {
		items = append(items, Reclaim{f.tenant, f.workflow, f.epoch, d.w.now + time.Second})
	}
	return ReclaimRun{list(d, 3, func() Reclaim { return one(d, items) })}
}

var listChoices = []choice{
	{2, func(d drawer) Step {
		w := Waiting{Tenant: d.tenant(), Limit: d.limit(), Cursor: d.cursor()}
		w.Run, w.Type, w.Key, w.State = d.waitFilter()
		return w
	}},
	{2, func(d drawer) Step {
		w := ParkedWaits{Tenant: d.tenant(), Limit: d.limit(), Cursor: d.cursor()}
		w.Run, w.Type, w.Key, w.State = d.waitFilter()
		return w
	}},
	{1, func(d drawer) Step { return QuarantinedWaits{d.tenant(), d.limit(), d.cursor()} }},
	{3, func(d drawer) Step {
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
	{1, func(d drawer) Step { return DueLeases{d.limit(), d.cursor()} }},
	{3, func(d drawer) Step {
		return TakeUnmet{one(d, []time.Duration{0, 2 * time.Second}), one(d, []time.Duration{0, time.Second}), d.limit()}
	}},
	{2, func(d drawer) Step {
		return TakeNews{one(d, []time.Duration{0, 2 * time.Second}), one(d, []time.Duration{0, time.Second}), d.limit()}
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
