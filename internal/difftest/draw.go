package difftest

import (
	"math/bits"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Names that steps are drawn from: few, so that they collide, and some that tell orders and patterns apart.
var (
	Tenants   = []string{"a", "B", "c_1"}
	workflows = []string{"w1", "W1", "w_", "é%"}
	runs      = []string{"r1", "r2", "r3", "R3", "r_4", "é5", "r6", "r7", "r8"}
	effects   = []string{"e1", "e2", "E2", "é3", "e4", "e5", "e6"}
	waits     = []string{"q1", "q2", "Q2", "é3", "q4", "q5", "q6"}
	sources   = []string{"shop", "Bank"}
	ids       = []string{"1", "2", "3", "4", "5", "6", "a", "A", "é"}
	kinds     = []string{"paid", "paid", "paid", "paid", "paid", "Paid"}
	matchKeys = []string{"o=1", "o=1", "o=2", "o=2", "O=1", "c=1"}
	queues    = []string{"", "fast", "Fast"}
	people    = []string{"", "", "kim", "Éa"}
	owners    = []string{"pod/1", "pod/2"}
	payloads  = []string{`{"n":1}`, "", empty, "\x00\xff"}
	batches   = []string{"", "b1", "b2"}
)

// drawer draws one step of a world as it stands.
type drawer struct {
	*rapid.T
	w *World
}

// choice is a kind of step and how often it is drawn.
type choice struct {
	weight int
	draw   func(d drawer) Step
}

// deck has every kind of step as often as it is to be drawn.
var deck = dealt(eventChoices, waitChoices, runChoices, leaseChoices, listChoices, deadChoices, pushChoices)

func dealt(all ...[]choice) []func(d drawer) Step {
	var deck []func(d drawer) Step
	for _, c := range slices.Concat(all...) {
		deck = append(deck, slices.Repeat([]func(d drawer) Step{c.draw}, c.weight)...)
	}
	return deck
}

// Begin starts a few runs: most verbs are about them.
func (w *World) Begin(t *rapid.T) {
	for range 4 {
		w.Do(rapid.Custom(func(t *rapid.T) drawn { return drawn{drawer{t, w}.start()} }).Draw(t, "step").Step)
	}
}

// Draw makes one step of chance: a new one, an earlier one again, or one that is malformed, and sometimes under a failure.
func (w *World) Draw(t *rapid.T) {
	if again := rapid.Custom(func(t *rapid.T) burst { return drawer{t, w}.burst() }).Draw(t, "burst"); len(again) > 0 {
		for _, s := range again {
			w.Do(s)
		}
		return
	}
	step := rapid.Custom(func(t *rapid.T) drawn { return drawn{drawer{t, w}.any()} }).Draw(t, "step")
	w.Do(step.Step)
	if _, armed := step.Step.(Arm); armed {
		step = rapid.Custom(func(t *rapid.T) drawn { return drawn{drawer{t, w}.call()} }).Draw(t, "step")
		w.Do(step.Step)
		if flip.Draw(t, "again") {
			w.Do(step.Step)
		}
	}
}

// burst is steps that are made again and again: a hold that ends at the very instant of the next take, or what it takes for the sixteenth failure of
// something.
type burst []Step

func (b burst) GoString() string { return script(b) }

func (d drawer) burst() burst {
	if !d.chance(30) {
		return nil
	}
	f, times := d.flow(), 2
	if d.chance(4) {
		times = rendezvous.QuarantineAfter + 1
	}
	return slices.Repeat(one(d, []burst{
		{TakeUnmet{Hold: time.Second}, Advance{time.Second}},
		{TakeUnmet{Hold: time.Second}, Advance{11 * time.Minute}},
		{TakeParked{Hold: time.Second}, Advance{time.Second}},
		{AcquireLease{f.tenant, f.run, "pod/1", 2 * time.Second, "k"}, Advance{2 * time.Second}, SweepLeases{}, TakeWoken{}},
		d.sent(f), d.sent(f),
	}), times)
}

// drawn prints as Go.
type drawn struct{ Step }

func (d drawn) GoString() string { return Go(d.Step) }

func (d drawer) any() Step {
	if d.chance(10) {
		return d.arm()
	}
	return d.call()
}

func (d drawer) call() Step {
	if again := d.earlier(); len(again) > 0 && d.chance(8) {
		return again[len(again)-1-d.n(0, len(again)-1)]
	}
	if d.chance(200) {
		return Reopen{}
	}
	step := one(d, deck)(d)
	if _, moves := step.(Advance); !moves && d.chance(25) {
		step = d.malform(step)
	}
	if t, takes := step.(TakeWoken); takes && t.Limit > 0 && len(d.w.vague) > 0 {
		return TakeWoken{} // which repeats a limited page takes is chance
	}
	return step
}

// earlier are the calls so far that can be made again: all but looks, failures and what moves the clock.
func (d drawer) earlier() []Step {
	return slices.DeleteFunc(slices.Clone(d.w.steps), func(s Step) bool {
		switch s.(type) {
		case Advance, Arm, Look, TakeWoken, Reopen, ClaimPushes:
			return true
		}
		return false
	})
}

// verbs are names that the engine gives its transactions; "" is any.
var verbs = []string{"", "", "", "second_look", "offer_batch", "append", "settle_pushes", "claim_pushes"}

func (d drawer) arm() Step {
	a := Arm{Verb: one(d, verbs), Point: one(d, []string{"before_commit", "after_commit", "at_call", "at_call"}), Skip: d.rare(8)}
	if a.Point == "at_call" {
		a.Call = d.n(1, 14)
	}
	if a.Point != "after_commit" && d.chance(3) {
		a.Err, a.Times = one(d, []string{"stale", "retry"}), d.n(1, 2)
	}
	return a
}

// spoilt are texts that some field or other does not take.
var spoilt = []string{"", Long, "\x00", "a\nb", "\xff", "push", " ", "'", `\`, "%", "\u2028", "$1"}

// malform changes one text or number of a step.
func (d drawer) malform(s Step) Step {
	v := reflect.New(reflect.TypeOf(s)).Elem()
	v.Set(copyOf(reflect.ValueOf(s)))
	var texts, numbers []reflect.Value
	eachText(v, func(text reflect.Value) { texts = append(texts, text) })
	eachNumber(v, func(number reflect.Value) { numbers = append(numbers, number) })
	if len(texts) > 0 && (len(numbers) == 0 || !d.chance(3)) {
		one(d, texts).SetString(one(d, spoilt))
	} else if len(numbers) > 0 {
		one(d, numbers).SetInt(one(d, []int64{-1, 0, 1, 1001, 1 << 40, rendezvous.MaxSeq, -1 << 63}))
	}
	return v.Interface().(Step)
}

func eachNumber(v reflect.Value, visit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachNumber(v.Field(i), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachNumber(v.Index(i), visit)
		}
	case reflect.Int, reflect.Int64:
		visit(v)
	}
}

// one is any of all, more likely the first when a sequence is shrunk.
func one[T any](d drawer, all []T) T { return all[d.n(0, len(all)-1)] }

// n is from least to most, each as likely: rapid's own ranges prefer their ends, which leaves most kinds of steps out. It shrinks to least.
func (d drawer) n(least, most int) int {
	span, n := most-least+1, 0
	for range bits.Len(uint(span-1)) + spare {
		n *= 2
		if flip.Draw(d.T, "") {
			n++
		}
	}
	return least + n%span
}

var flip = rapid.Bool()

// spare are bits that a number has more than its span, so that no part of it comes up much more often.
const spare = 3

// chance is one in n.
func (d drawer) chance(n int) bool { return d.n(1, n) == n }

// rare is mostly 0, and up to 2 once in n.
func (d drawer) rare(n int) int {
	if d.chance(n) {
		return d.n(1, 2)
	}
	return 0
}

// few are one of all and up to most, mostly.
func few[T any](d drawer, most int, all []T) []T {
	if d.chance(10) {
		return nil
	}
	return append(some(d, most-1, all), one(d, all))
}

// some are up to most of all, with repeats.
func some[T any](d drawer, most int, all []T) []T {
	var drawn []T
	for range d.n(0, most) {
		drawn = append(drawn, one(d, all))
	}
	return drawn
}

// list makes one item, or up to most.
func list[T any](d drawer, most int, item func() T) []T {
	items := []T{item()}
	for range d.n(0, most-1) {
		items = append(items, item())
	}
	return items
}

func (d drawer) tenant() string {
	if d.chance(4) {
		return one(d, Tenants)
	}
	return Tenants[0]
}

// at is mostly the store's now, and sometimes an instant that the caller names.
func (d drawer) at() time.Duration {
	if !d.chance(12) {
		return 0
	}
	return d.w.now + one(d, []time.Duration{time.Second, -time.Second, time.Hour, 40 * 24 * time.Hour})
}

// flow is a workflow as it stands, with what a caller believes of it.
type flow struct {
	tenant, workflow, run string
	epoch, head           int64
	store.Workflow
}

// flow is mostly one that goes on, as its driver knows it; beliefs are sometimes stale.
func (d drawer) flow() flow {
	f := flow{tenant: d.tenant(), workflow: one(d, workflows), run: one(d, runs)}
	all := d.flows(f.tenant)
	if len(all) == 0 || d.chance(20) {
		return f
	}
	f.Workflow = d.goingOn(all)
	f.workflow, f.run, f.epoch, f.head = d.w.role(f.WorkflowID), d.w.role(f.RunID), f.LeaseEpoch, f.Head
	if f.LeaseOwner == "" {
		f.epoch = 0
	}
	if d.chance(12) {
		f.run = d.past(f)
	}
	if d.chance(12) {
		f.epoch = max(0, f.LeaseEpoch+one(d, []int64{0, -1, 1, -f.LeaseEpoch}))
	}
	if d.chance(12) {
		f.head = max(0, f.Head+one(d, []int64{-1, 1, -2, -f.Head}))
	}
	return f
}

// goingOn is mostly one that goes on.
func (d drawer) goingOn(all []store.Workflow) store.Workflow {
	on := slices.DeleteFunc(slices.Clone(all), func(f store.Workflow) bool { return f.Status.Terminal() })
	if len(on) == 0 || d.chance(8) {
		return one(d, all)
	}
	return one(d, on)
}

// driven is a workflow that is leased, if one of the tenant's is.
func (d drawer) driven() (flow, bool) {
	f := d.flow()
	for range 4 {
		if f.LeaseOwner != "" {
			return f, true
		}
		f = d.flow()
	}
	return f, d.chance(6)
}

// flows are the tenant's workflows.
func (d drawer) flows(tenant string) []store.Workflow {
	got, err := d.w.look(tenant).QueryWorkflows(ctx, store.WorkflowFilter{}, rendezvous.MaxList, "")
	if err != nil {
		d.Fatalf("look at the workflows of %s: %v", tenant, err)
	}
	return got.Workflows
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// past is a run of the workflow, mostly one that ended.
func (d drawer) past(f flow) string {
	chain, err := d.w.look(f.tenant).ReadRunChain(ctx, f.WorkflowID, 0, 0)
	if err != nil {
		d.Fatalf("look at the runs of %s: %v", f.WorkflowID, err)
	}
	return d.w.role(one(d, chain).RunID)
}

// rows are the tenant's waits.
func (d drawer) rows(tenant string) []store.WaitRow {
	got, err := d.w.look(tenant).Waiting(ctx, store.WaitFilter{}, rendezvous.MaxList, "")
	if err != nil {
		d.Fatalf("look at the waits of %s: %v", tenant, err)
	}
	return got.Waits
}

// held is mostly a wait that has a row, and rather one that holds an event when that is asked.
func (d drawer) held(parked bool) Held {
	tenant := d.tenant()
	rows := d.rows(tenant)
	if parked {
		slices.SortStableFunc(rows, func(a, b store.WaitRow) int { return btoi(a.Held == nil) - btoi(b.Held == nil) })
	}
	if len(rows) == 0 || d.chance(10) {
		f := d.flow()
		return Held{f.tenant, f.run, one(d, waits)}
	}
	most := len(rows) - 1
	if parked && rows[0].Held != nil && !d.chance(4) {
		most = slices.IndexFunc(append(rows, store.WaitRow{}), func(r store.WaitRow) bool { return r.Held == nil }) - 1
	}
	row := rows[d.n(0, most)]
	return Held{tenant, d.w.role(row.RunID), row.Effect}
}

// name is mostly an event that was seen.
func (d drawer) name() Name {
	if all := d.w.known.events; len(all) > 0 && !d.chance(15) {
		if n := len(all); n > 6 && d.chance(2) {
			all = all[n-6:]
		}
		return one(d, all)
	}
	return Name{d.tenant(), one(d, sources), one(d, ids)}
}

// cursor is mostly none, and sometimes one that a list handed out, or none of any list.
func (d drawer) cursor() int {
	if !d.chance(10) {
		return 0
	}
	return d.n(-1, len(d.w.sides[0].cursors))
}

// limit is a small page, and sometimes the default.
func (d drawer) limit() int { return one(d, []int{1, 2, 3, 0}) }
