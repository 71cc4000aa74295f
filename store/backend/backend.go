package backend

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// ErrStale says that a row moved on between the read and the write: undo and make the verb anew.
var ErrStale = errors.New("backend: a row moved on since it was read")

// ErrRetry says that the database gave up on the transaction for reasons of its own (deadlock, serialisation): make the verb anew.
var ErrRetry = errors.New("backend: the transaction was given up by the database")

// Backend is a storage engine.
type Backend interface {
	// Update runs fn in one write transaction and commits if fn answers nil; otherwise nothing is written and fn's error is answered.
	// Errors of its own: ErrStale, ErrRetry, *rendezvous.Error with unavailable, commit_unknown or corrupt. verb is the name for spans and metrics.
	Update(ctx context.Context, verb string, fn func(ctx context.Context, tx Tx) error) error
	// View runs fn over one snapshot. It takes no lock and starts no write transaction (HI-38).
	View(ctx context.Context, verb string, fn func(ctx context.Context, r Reader) error) error
	Ping(ctx context.Context) error
	Close() error
	// Shards is N, fixed when the store was created (shards.md section 1).
	Shards() int
}

// Reader reads sets of rows. Keys that name nothing are absent from the answer; answers of slices are in the order their comments say. A row that
// does not decode is answered with Corrupt set where its type has that, else the read is ErrCorrupt with the row's key.
// Rows answered may be changed by the caller; they are its own copies.
type Reader interface {
	// Now is the store's now, whole microseconds, the same throughout one transaction.
	Now() time.Time

	Workflows(ctx context.Context, keys []WorkflowKey) (map[WorkflowKey]*Workflow, error)
	Runs(ctx context.Context, keys []RunKey) (map[RunKey]*Run, error)
	// RunsOf answers a workflow's runs by first seq, those with first_seq > after.
	RunsOf(ctx context.Context, key WorkflowKey, after int64, limit int) ([]*Run, error)
	Batches(ctx context.Context, keys []BatchKey) (map[BatchKey]*Batch, error)
	// Woken answers the marks of those workflows.
	Woken(ctx context.Context, keys []WorkflowKey) (map[WorkflowKey]*Woken, error)

	// History answers records of one workflow with seq in [from, to], ascending, at most limit, payload and data bytes at most maxBytes but at least
	// one record. to 0 means no bound. Records of unknown kind or version are marked. A record that does not decode is ErrCorrupt with details tenant,
	// workflow, seq (HI-8).
	History(ctx context.Context, key WorkflowKey, from, to int64, limit int, maxBytes int) ([]rendezvous.Record, error)
	// HistorySize is the number of records and of their bytes.
	HistorySize(ctx context.Context, key WorkflowKey) (records int64, bytes int64, err error)
	// Effects answers, for each effect key, the records that open and close it, of all attempts, ascending by seq, without payloads. By index; no
	// history is read.
	Effects(ctx context.Context, keys []WaitKey) (map[WaitKey][]rendezvous.Record, error)

	// RecordsAt answers those records, payloads whole: answers their caller is owed. By primary key; records that are not there are absent.
	RecordsAt(ctx context.Context, keys []RecordKey) (map[RecordKey]rendezvous.Record, error)
	// OpenEffects answers the run's EffectStarted records that nothing closed, of all attempts, ascending by seq, at most limit, without payloads.
	// By index; asked only when a conclusion is about to be refused (G3).
	OpenEffects(ctx context.Context, key RunKey, limit int) ([]rendezvous.Record, error)
	// EffectNames answers the effect keys of a run, waits among them, in the order of bytes, at most limit. By index.
	EffectNames(ctx context.Context, key RunKey, limit int) ([]string, error)
	// LastFailure is the effect of the run's last EffectFailed with retryable false whose effect has no later EffectDone; "" for none. By index; asked
	// once per failed run (history.md section 5).
	LastFailure(ctx context.Context, key RunKey) (string, error)

	EventsByKey(ctx context.Context, keys []EventKey, payload bool) (map[EventKey]*Event, error)
	EventsByNumber(ctx context.Context, numbers []int64, payload bool) (map[int64]*Event, error)
	// LiveEvents answers per lookup the live events under that key, ascending by number, without payload: the match index.
	LiveEvents(ctx context.Context, lookups []Lookup) ([][]*Event, error)
	// ClaimedEvents answers, per wait, the event whose standing claim names it, without payload: what a lost row of a wait is restored for.
	ClaimedEvents(ctx context.Context, keys []WaitKey) (map[WaitKey]*Event, error)
	// KeptCounts is the number of live events targeted at each of those runs; a run without any may be absent.
	KeptCounts(ctx context.Context, keys []RunKey) (map[RunKey]int, error)
	// KeptEvents answers the live events targeted at those runs, by (tenant, run, number), without payload.
	KeptEvents(ctx context.Context, keys []RunKey) ([]*Event, error)

	Waits(ctx context.Context, keys []WaitKey) (map[WaitKey]*Wait, error)
	// WaitsOf answers all waits of those runs by (tenant, run, number).
	WaitsOf(ctx context.Context, keys []RunKey) ([]*Wait, error)
	// ParkedOf is the number of parked, not quarantined waits per run: mail.
	ParkedOf(ctx context.Context, keys []RunKey) (map[RunKey]int, error)
	// OpenWaits answers per lookup the open waits under that key, ascending by number: the match index.
	OpenWaits(ctx context.Context, lookups []Lookup) ([][]*Wait, error)

	// NearWaits answers, per key, the open waits under it, whatever their type; and those of the type, open or parked, among the tenant's n.Walk newest by
	// number.
	NearWaits(ctx context.Context, n Near) (Nearby[Wait], error)
	// NearEvents answers, per key, the untargeted live events under it; and the live events of the type, targeted ones too, among those that were live last: in
	// n.Walk key rows of those without an expiry, and in as many of those that expire last. Without payload.
	NearEvents(ctx context.Context, n Near) (Nearby[Event], error)

	// Of the lists with a filter a page has at most p.Limit rows that pass, out of p.Look rows that it looks at (of each range, where the order has two): it may
	// be short, even empty, and not the last. next is the after of the following page, zero at the end.

	// ListWaits pages a tenant's waits with number > after that pass the filter, ascending. Those of one run are found by index: it looks at all of them.
	ListWaits(ctx context.Context, tenant string, f WaitFilter, after int64, p Span) (rows []*Wait, next int64, err error)
	// ListParked pages a tenant's parked waits: not quarantined by (next_attempt_at, number), then quarantined ones in the same order.
	ListParked(ctx context.Context, tenant string, f WaitFilter, after ParkedPosition, p Span) (rows []*Wait, next ParkedPosition, err error)
	// ListQuarantined pages by (quarantined_at, number).
	ListQuarantined(ctx context.Context, tenant string, after ParkedPosition, limit int) ([]*Wait, error)
	// ListWorkflows pages by (started_at descending, workflow id ascending). A row that does not decode keeps its place: StartedAt is good, too.
	ListWorkflows(ctx context.Context, tenant string, f WorkflowFilter, after WorkflowPosition, p Span) (rows []*Workflow, next WorkflowPosition, err error)
	// CountWorkflows counts exactly, however many it has to look at, up to most, 0 being all.
	CountWorkflows(ctx context.Context, tenant string, f WorkflowFilter, most int) (int, error)
	// Abandoned pages owners whose lease expired at or before now, by (expires_at, tenant, workflow id). A row that does not decode keeps its place:
	// LeaseExpires is good, too. Only workflows of those shards: nil is all, empty is none.
	Abandoned(ctx context.Context, shards []int, after AbandonedPosition, limit int) ([]*Workflow, error)
	// DueLeases answers rows of Abandoned behind after, fair by tenant (S3), in the same order. next is the after of the following page, below every row that got
	// no place, zero when there is none: rows that stay are met again, and hide none.
	DueLeases(ctx context.Context, shards []int, after AbandonedPosition, limit int) (rows []*Workflow, next AbandonedPosition, err error)
	// Closed pages workflows closed at or before that, by (closed_at, tenant, workflow id). A row that does not decode keeps its place: ClosedAt is good, too.
	Closed(ctx context.Context, before time.Time, after ClosedPosition, limit int) ([]*Workflow, error)
	// RemnantOf answers a remnant of that workflow, or of that run; nil where there is none. By index.
	RemnantOf(ctx context.Context, flow WorkflowKey, run RunKey) (*Remnant, error)
	// DeadLetters pages a tenant's dead letters that pass the filter, without payload. next is the After of the following page, 0 at the end: how many
	// letters one call looks at is bounded, so a page may be short and not the last.
	DeadLetters(ctx context.Context, tenant string, w DeadWalk, limit int) (rows []*Event, next int64, err error)
	// CountDead counts the dead letters that pass the filter by reason; those of the lowest numbers, where there are more than most, 0 being all. more says so.
	CountDead(ctx context.Context, tenant string, f DeadFilter, most int) (counts map[rendezvous.DeadReason]int, more bool, err error)
	// EventsOfOp answers the events with number > after whose last requeue, or purge, was that one, by number, without payload.
	EventsOfOp(ctx context.Context, tenant, op string, purged bool, after int64, limit int) ([]*Event, error)
	Depths(ctx context.Context, most int) (Depths, error)

	TimerReader
	PushReader
}

// Tx reads and changes rows in one transaction.
type Tx interface {
	Reader
	// LockWorkflows locks those rows in key order until the end and answers them as they are under the lock. It is called once in a transaction, after
	// unlocked reads and before reads that the lock is to protect.
	LockWorkflows(ctx context.Context, keys []WorkflowKey) (map[WorkflowKey]*Workflow, error)
	// NewNumbers draws n rising numbers for events and n for waits and claims: order only, never given twice, gaps are normal.
	NewEventNumbers(ctx context.Context, n int) ([]int64, error)
	NewWaitNumbers(ctx context.Context, n int) ([]int64, error)
	// NewTakes draws n rising take tokens.
	NewTakes(ctx context.Context, n int) ([]int64, error)

	// DueParked answers parked waits due at now, not quarantined, without a running take (TakeUntil after now and not settled), whose runs are unsealed
	// and under no live lease, by (next_attempt_at, number), fair by tenant (S3); rows locked by others are skipped. more says that more was due. Only of those
	// shards: nil is all, empty is none.
	DueParked(ctx context.Context, shards []int, limit int) (rows []*Wait, more bool, err error)
	// DueWoken answers woken marks with next_notice_at ≤ now of unsealed, free, not paused runs, by (next_notice_at, tenant, workflow id), fair by
	// tenant, skipping locked rows. Only of those shards, as DueParked.
	DueWoken(ctx context.Context, shards []int, limit int) (rows []*Woken, more bool, err error)
	// UnmetEvents answers live, unexpired events with number > after without a running take (take_until > now) whose live_since is ≤ before and that share a
	// match key and type with an open wait whose OpenSince is ≤ before, by number, fair by tenant, skipping locked rows. A targeted event counts when
	// its run has such an open wait of its type. How many live events one call looks at is bounded, so a page may be short or empty and not the last:
	// next is the after of the following page, below every event that is owed a place and got none; 0 says that all were looked at.
	UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) (rows []*Event, next int64, err error)
	// UnmetNews answers, of those events, the ones that walks over what became matchable lately lead to: from an event itself, and from a wait to the lowest of
	// the first few events under its keys, or targeted at its run, that it could have met, no other source than its From among them. How many rows a walk
	// goes over is bounded.
	UnmetNews(ctx context.Context, before time.Time, from News, limit int) (NewsPage, error)
	// LastNumbers are the highest that were drawn, by whomever: all that are drawn later are higher.
	LastNumbers(ctx context.Context) (Numbers, error)

	// OverdueEvents answers live events whose time is over, without payload, the longest due first and, of equals, the lowest number, fair by tenant (S3);
	// rows locked by others are skipped. How many it looks at is bounded.
	OverdueEvents(ctx context.Context, o Overdue, limit int) (OverdueEvents, error)
	// OldLetters answers dead letters that lists show, dead since before or earlier and behind after, without payload, by (dead_at, number), fair by tenant
	// (S3); rows locked by others are skipped. more says that more was due.
	OldLetters(ctx context.Context, before time.Time, after LetterPosition, limit int) (rows []*Event, more bool, err error)

	// Remnants answers some remnants, at most limit of their records and batches together; remnants locked by others are skipped.
	Remnants(ctx context.Context, limit int) (Remnants, error)

	TimerTx
	PushTx

	// Apply makes all changes or none, in one round trip. It is the last thing a verb does in its transaction, called at most once.
	Apply(ctx context.Context, c *Changes) error
}

// Lookup asks the match index of one tenant, type and key for rows with number > After, at most Limit.
type Lookup struct {
	Tenant, Type string
	Key          rendezvous.Key
	After        int64
	Limit        int
}

// WaitFilter chooses waits; zero parts mean any.
type WaitFilter struct {
	RunID, Type string
	Key         *rendezvous.Key
	State       rendezvous.WaitState
}

// Span bounds a page of a list.
type Span struct {
	Limit int // rows that pass
	Look  int // rows that it looks at
}

// WorkflowFilter chooses workflows; empty parts mean any.
type WorkflowFilter struct {
	Types    []string
	Statuses []rendezvous.Status
	Queues   []string
	Prefix   string
}

// ParkedPosition is the last row of a page of parked waits. The zero value is before all.
type ParkedPosition struct {
	Set         bool
	Quarantined bool
	At          time.Time
	Number      int64
}

// WorkflowPosition is the last row of a page of workflows.
type WorkflowPosition struct {
	Set       bool
	StartedAt time.Time
	ID        string
}

// AbandonedPosition is the last row of a page of abandoned runs.
type AbandonedPosition struct {
	Set     bool
	Expires time.Time
	Key     WorkflowKey
}

// AbandonedAt is a row's place among abandoned runs.
func AbandonedAt(w *Workflow) AbandonedPosition {
	return AbandonedPosition{Set: true, Expires: w.LeaseExpires, Key: w.Key()}
}

// CompareAbandoned is the order of abandoned runs.
func CompareAbandoned(a, b *Workflow) int {
	return cmp.Or(a.LeaseExpires.Compare(b.LeaseExpires), a.Key().Compare(b.Key()))
}

// Within is the place among a tenant's own leases behind which those behind p stand; start is before every instant.
func (p AbandonedPosition) Within(tenant string, start time.Time) (expires time.Time, id string) {
	switch {
	case !p.Set:
		return start, ""
	case tenant < p.Key.Tenant:
		return p.Expires.Add(time.Microsecond), ""
	case tenant == p.Key.Tenant:
		return p.Expires, p.Key.ID
	}
	return p.Expires, "" // no id is empty
}

// ClosedPosition is the last row of a page of closed workflows.
type ClosedPosition struct {
	Set    bool
	Closed time.Time
	Key    WorkflowKey
}

// Remnants is a page of what pruned runs left.
type Remnants struct {
	Runs    []*Remnant // by (tenant, run); at most MostRemnants
	Records []RecordKey
	Batches []BatchKey
	More    bool // Runs may have left more than is named
}

// Cut leaves limit records and batches in the page.
func (r *Remnants) Cut(limit int) {
	if len(r.Records) > limit {
		r.Records, r.More = r.Records[:limit], true
	}
	if room := limit - len(r.Records); len(r.Batches) > room {
		r.Batches, r.More = r.Batches[:room], true
	}
}

// MostRemnants is how many pruned runs a page of Remnants is about.
const MostRemnants = 500

// LetterPosition is the last row of a page of old letters.
type LetterPosition struct {
	Set    bool
	At     time.Time
	Number int64
}

// Depths counts live rows, each up to the asked maximum.
type Depths struct {
	LiveEvents, OpenWaits, ParkedWaits, QuarantinedWaits, Woken, Timers, DueTimers int
	OldestLiveEvent, OldestParked, OldestWoken, OldestDueTimer                     time.Time
	DuePushes, FailingPushes, ParkedPushes                                         int
	OldestDuePush                                                                  time.Time
	Dead                                                                           map[rendezvous.DeadReason]int // each reason up to the maximum; no zeros
}

// Changes is everything one verb changes. Parts are applied so that a record copying an event's payload comes before that payload is shed.
type Changes struct {
	// New workflows and runs are ErrStale, too, where a remnant has their ids.
	NewWorkflows []*Workflow
	NewRuns      []*Run
	NewEvents    []*Event // Number drawn before
	NewWaits     []*Wait  // Number drawn before
	NewBatches   []*Batch
	Records      []*Record // a seq, or an effect's opening or closing, that is there already is ErrStale: somebody else wrote it meanwhile

	Workflows []*Workflow // locked by this transaction
	Runs      []*Run
	// Events are changed by Number and Version; of one with Purged set the keys go. Of one with Corrupt set only state, death, offer failures and take are written: the rest is not known.
	// A corrupt row as read has identity, number, version and, as far as they decode, these columns and its claim.
	Events []*Event
	// Waits are changed by Number and Version. Of one with Corrupt set only attempts, next attempt, last error, take and quarantine are written.
	Waits []*Wait

	GoneWaits []*Wait // by Number and Version
	// Woken marks are inserted; where one stands, its Since and Notices stay, the earlier NextNoticeAt wins, and the rest is replaced. A mark with
	// Anew replaces all but Since.
	Woken []*Woken
	// Unwoken marks go, before Woken ones come: a mark in both is a new one.
	Unwoken []WorkflowKey
	// MarkedWoken are moved notices: NextNoticeAt and Notices of marks handed out by DueWoken.
	MarkedWoken []*Woken

	// Timers are written whole, over what stands under their keys; GoneTimers go, before them. Their workflows are locked by this transaction. Of one with
	// Corrupt set only DueAt, ReadyAt, Attempts, LastError, Parks and the hold are written.
	Timers     []*Timer
	GoneTimers []TimerKey
	// HeldTimers were locked by LockTimers or HeldTimers: only the hold and ReadyAt are written.
	HeldTimers []*Timer

	NewShardLeases []*ShardLease // one that is there already is ErrStale
	ShardLeases    []*ShardLease // locked by this transaction
	Members        []*Member     // written over what stands under their keys
	GoneMembers    []MemberKey

	// Wakes come first. NewPushes that are there already are ErrStale. Pushes and GonePushes were locked by this transaction; of one with Corrupt set only
	// NextAttemptAt and the lease are written. They are the last rows that are locked (R7).
	Wakes       []*PushWake
	NewPushes   []*Push
	Pushes      []*Push
	GonePushes  []PushKey
	PushLog     []*PushLogEntry
	GonePushLog []PushLogKey

	// GoneWorkflows, locked by this transaction, and GoneRuns go, with their registrations and their logs, and Remnants come in their place.
	GoneWorkflows []WorkflowKey
	GoneRuns      []RunKey
	Remnants      []*Remnant
	// What was left goes, and then its remnants: rows that Remnants handed out.
	GoneRecords  []RecordKey
	GoneBatches  []BatchKey
	GoneRemnants []RunKey
}

// Empty reports whether there is nothing to change.
func (c *Changes) Empty() bool {
	return len(c.NewWorkflows)+len(c.NewRuns)+len(c.NewEvents)+len(c.NewWaits)+len(c.NewBatches)+len(c.Records)+len(c.Workflows)+len(c.Runs)+
		len(c.Events)+len(c.Waits)+len(c.GoneWaits)+len(c.Woken)+len(c.Unwoken)+len(c.MarkedWoken)+
		len(c.Timers)+len(c.GoneTimers)+len(c.HeldTimers)+len(c.NewShardLeases)+len(c.ShardLeases)+len(c.Members)+len(c.GoneMembers)+
		len(c.NewPushes)+len(c.Pushes)+len(c.GonePushes)+len(c.Wakes)+len(c.PushLog)+len(c.GonePushLog)+
		len(c.GoneWorkflows)+len(c.GoneRuns)+len(c.Remnants)+len(c.GoneRecords)+len(c.GoneBatches)+len(c.GoneRemnants) == 0
}
