package store

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Retention is the operator of what is purged by rule.
const Retention = "retention"

// OldLetter names a dead letter whose time is over.
type OldLetter struct {
	Tenant string
	rendezvous.EventID
	Corrupt error // spared: its row does not decode
}

// OldLetters is a page of PurgeOldLetters, the longest dead first.
type OldLetters struct {
	Purged     []OldLetter
	Spared     []OldLetter // left as they are
	NextCursor string      // more may be due behind what was looked at; "" at the end
}

// ClosedWorkflow names a workflow that was closed for its time.
type ClosedWorkflow struct {
	Tenant, WorkflowID string
	Why                error // spared: what speaks against it
}

// Pruned is a page of PruneWorkflows, the longest closed first.
type Pruned struct {
	Pruned     []ClosedWorkflow
	Spared     []ClosedWorkflow // left as they are
	NextCursor string           // more may be due behind what was looked at; "" at the end
}

// PrunedRecords is a page of PruneRecords.
type PrunedRecords struct {
	Removed int // records and batches
	More    bool
}

// MaxPruneRecords is how many records and batches one page removes.
const MaxPruneRecords = 5000

// Retainer ends what was kept for its time (sweep.md section 6).
type Retainer interface {
	// PurgeOldLetters purges dead letters dead since deadBefore or earlier as PurgeDeadLetters does, operator Retention, for all tenants fairly (S3). What
	// does not decode is spared; the cursor leads past it, so that it hides nothing. limit is 200 by default and 500 at most. Again: the next page; a letter
	// that came back to life meanwhile stays, rows that somebody else has in hand come again (S5).
	PurgeOldLetters(ctx context.Context, deadBefore time.Time, limit int, cursor string) (OldLetters, error)
	// PruneWorkflows removes workflows closed at closedBefore or earlier, whole, in the order (closed_at, tenant, workflow id): from its commit on every read
	// answers that they are unknown. Their records follow with PruneRecords; until those are gone, their ids and their runs' cannot be started again
	// (conflict, pruning). Events keep saying which run and seq consumed them. Spared is what does not decode, or has a wait left over; the cursor leads past
	// it, so that it hides nothing. limit is 200 by default and 500 at most; a page also ends at 5,000 runs. Again: the next page (S5).
	PruneWorkflows(ctx context.Context, closedBefore time.Time, limit int, cursor string) (Pruned, error)
	// PruneRecords removes records and batches of pruned workflows, MaxPruneRecords by default and at most; after a crash it goes on where it was.
	PruneRecords(ctx context.Context, limit int) (PrunedRecords, error)
}
