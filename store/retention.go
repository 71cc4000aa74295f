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

// Retainer ends what was kept for its time (sweep.md section 6).
type Retainer interface {
	// PurgeOldLetters purges dead letters dead since deadBefore or earlier as PurgeDeadLetters does, operator Retention, for all tenants fairly (S3). What
	// does not decode is spared; the cursor leads past it, so that it hides nothing. limit is 200 by default and 500 at most. Again: the next page; a letter
	// that came back to life meanwhile stays, rows that somebody else has in hand come again (S5).
	PurgeOldLetters(ctx context.Context, deadBefore time.Time, limit int, cursor string) (OldLetters, error)
}
