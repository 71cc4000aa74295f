package backend

import (
	"context"
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
)

// Kind is a kind of rows. Key rows are none: a backend makes them of the rows they belong to.
type Kind string

// The kinds of rows.
const (
	Workflows   Kind = "workflows"
	Runs        Kind = "runs"
	History     Kind = "history"
	Batches     Kind = "batches"
	Left        Kind = "remnants"
	Events      Kind = "events"
	Waits       Kind = "waits"
	Marks       Kind = "woken"
	Timers      Kind = "timers"
	ShardLeases Kind = "shard_leases"
	Pushes      Kind = "push_registrations"
	PushLogs    Kind = "push_log"
)

// Kinds is all of them that are moved, so that a row comes after the workflow it belongs to. Members of pools are not: none outlives its process.
var Kinds = [...]Kind{Workflows, Runs, History, Batches, Left, Events, Waits, Marks, Timers, ShardLeases, Pushes, PushLogs}

// Position is the primary key of a row among those of its kind, and so their order, texts as bytes; the zero value is before all. Tenant, ID and Part are the
// texts of the key in turn: tenant and workflow or run, and the batch, effect, timer or registration; ID alone is a pool. Number is a record's seq, a shard, an
// entry's number in the log of a registration's Incarnation, or an event's number, which is its whole key here.
type Position struct {
	Tenant      string `json:"tenant,omitempty"`
	ID          string `json:"id,omitempty"`
	Part        string `json:"part,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"`
	Number      int64  `json:"number,omitempty"`
}

// Page is some rows of one kind, as [Tx.Apply] takes them to insert them.
type Page struct {
	Changes
	Rows, Bytes int      // how many, and how large about
	Last        Position // of the last of them
}

// Numbers are numbers of each sort up to which some may have been given.
type Numbers struct {
	Event int64 `json:"event"`
	Wait  int64 `json:"wait"`
	Take  int64 `json:"take"`
}

// Max is the higher one of each.
func (n Numbers) Max(o Numbers) Numbers {
	return Numbers{max(n.Event, o.Event), max(n.Wait, o.Wait), max(n.Take, o.Take)}
}

// Source is a [Reader] that can be read from end to end, to move all of it to another backend (store/move).
type Source interface {
	Reader
	// Scan answers rows of a kind behind after, in the order of their positions, payloads whole: at most limit, about maxBytes at most, but at least one;
	// none is the end. A row that does not decode is ErrCorrupt with its key.
	Scan(ctx context.Context, kind Kind, after Position, limit, maxBytes int) (*Page, error)
	// About is how many rows of a kind there are, roughly, for somebody who watches.
	About(ctx context.Context, kind Kind) (int64, error)
	// Given is up to where numbers may have been given.
	Given(ctx context.Context) (Numbers, error)
	// Unfinished is what [Target.Mark] set last; "" for a store that no copy is under way to.
	Unfinished(ctx context.Context) (string, error)
}

// Target is a [Tx] of a backend that everything can be moved to.
type Target interface {
	Tx
	Source
	// Mark says how far a copy to this store got, "" that it is done, and is ErrStale unless was is what is set now. While it says something, the store is
	// refused to whoever opens it for anything else. It comes before Apply.
	Mark(ctx context.Context, was, mark string) error
	// Raise has all numbers that are drawn from here on be above n.
	Raise(ctx context.Context, n Numbers) error
}

// HalfCopied refuses a store whose mark is set. A mark is JSON, an object with a member "from", for this.
func HalfCopied(mark string) error {
	if mark == "" {
		return nil
	}
	var m struct {
		From string `json:"from"`
	}
	if err := json.Unmarshal([]byte(mark), &m); err != nil || m.From == "" {
		return Corrupt("mark of a copy", "meta", "name", "copy")
	}
	return rendezvous.InvalidField("store", "it is half copied from %s; finish that by the same `rendezvous migrate copy`, or empty the store", m.From).
		With("from", m.From)
}

// add notes a row of about that size.
func (p *Page) add(last Position, bytes int) {
	p.Last = last
	p.Rows++
	p.Bytes += bytes + 200 // columns of few bytes, and there are many
}

// AddWorkflow adds a row and answers what is wrong with it.
func (p *Page) AddWorkflow(w *Workflow) error {
	p.NewWorkflows = append(p.NewWorkflows, w)
	p.add(Position{Tenant: w.Tenant, ID: w.ID}, len(w.FailureReason))
	return w.Corrupt
}

// AddRun adds a row.
func (p *Page) AddRun(r *Run) {
	p.NewRuns = append(p.NewRuns, r)
	p.add(Position{Tenant: r.Tenant, ID: r.ID}, len(r.Retired))
}

// AddRecord adds a record and answers what is wrong with it. closes is what the store has noted of its kind: of a kind that this build does not know, it is
// all that is known, and could not be written again.
func (p *Page) AddRecord(tenant, workflow string, r rendezvous.Record, closes bool) error {
	p.Records = append(p.Records, &Record{Tenant: tenant, WorkflowID: workflow, Record: r})
	p.add(Position{Tenant: tenant, ID: workflow, Number: r.Seq}, len(r.Data)+len(r.Payload))
	if closes != (r.Kind.Phase() == rendezvous.PhaseClose) {
		return Corrupt("record", "closes", "tenant", tenant, "workflow", workflow, "seq", r.Seq)
	}
	return nil
}

// AddBatch adds a row.
func (p *Page) AddBatch(b *Batch) {
	p.NewBatches = append(p.NewBatches, b)
	p.add(Position{Tenant: b.Tenant, ID: b.RunID, Part: b.ID}, len(b.Outcome))
}

// AddRemnant adds a row.
func (p *Page) AddRemnant(r *Remnant) {
	p.Remnants = append(p.Remnants, r)
	p.add(Position{Tenant: r.Tenant, ID: r.RunID}, 0)
}

// AddEvent adds a row, its payload whole, and answers what is wrong with it.
func (p *Page) AddEvent(e *Event) error {
	p.NewEvents = append(p.NewEvents, e)
	p.add(Position{Number: e.Number}, len(e.Payload))
	return e.Corrupt
}

// AddWait adds a row and answers what is wrong with it.
func (p *Page) AddWait(w *Wait) error {
	p.NewWaits = append(p.NewWaits, w)
	p.add(Position{Tenant: w.Tenant, ID: w.RunID, Part: w.Effect}, len(w.LastError))
	return w.Corrupt
}

// AddMark adds a row.
func (p *Page) AddMark(m *Woken) {
	p.Woken = append(p.Woken, m)
	p.add(Position{Tenant: m.Tenant, ID: m.WorkflowID}, 0)
}

// AddTimer adds a row and answers what is wrong with it.
func (p *Page) AddTimer(t *Timer) error {
	p.Timers = append(p.Timers, t)
	p.add(Position{Tenant: t.Tenant, ID: t.WorkflowID, Part: t.TimerID}, len(t.LastError))
	return t.Corrupt
}

// AddShardLease adds a row.
func (p *Page) AddShardLease(l *ShardLease) {
	p.NewShardLeases = append(p.NewShardLeases, l)
	p.add(Position{ID: l.Pool, Number: int64(l.Shard)}, 0)
}

// AddPush adds a row and answers what is wrong with it.
func (p *Page) AddPush(x *Push) error {
	x.Resettled = true
	p.NewPushes = append(p.NewPushes, x)
	p.add(Position{Tenant: x.Tenant, ID: x.RunID, Part: x.ID}, len(EncodePushSettings(x.Settings)))
	return x.Corrupt
}

// AddPushLog adds an entry.
func (p *Page) AddPushLog(e *PushLogEntry) {
	p.PushLog = append(p.PushLog, e)
	p.add(Position{Tenant: e.Tenant, ID: e.RunID, Part: e.ID, Incarnation: e.Incarnation, Number: e.No}, len(e.Attempt.Response)+len(e.Attempt.Error))
}

// PushLogKey is the entry of a log at a position.
func (p Position) PushLogKey() PushLogKey {
	return PushLogKey{PushKey{p.Tenant, p.ID, p.Part}, p.Incarnation, p.Number}
}
