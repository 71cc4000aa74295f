package postgres_test

import (
	"context"
	"testing"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// S5: pages that come again pass over rows that others have locked, so that those hide nothing behind them.
func TestLockedRowsArePassedOver(t *testing.T) {
	url := analyzed.Database(t)
	b := open(t, url)
	defer b.Close()
	// Each page is of one row: what is locked outside it is handed out to nobody else meanwhile.
	pages := map[string]func(ctx context.Context, tx backend.Tx) (string, error){
		"DueParked": func(ctx context.Context, tx backend.Tx) (string, error) {
			rows, _, err := tx.DueParked(ctx, nil, 1)
			if err != nil || len(rows) == 0 {
				return "", err
			}
			return rows[0].RunID, nil
		},
		"DueWoken": func(ctx context.Context, tx backend.Tx) (string, error) {
			rows, _, err := tx.DueWoken(ctx, nil, 1)
			if err != nil || len(rows) == 0 {
				return "", err
			}
			return rows[0].RunID, nil
		},
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			err := b.Update(t.Context(), "test", func(ctx context.Context, outer backend.Tx) error {
				first, err := page(ctx, outer)
				if err != nil {
					return err
				}
				return b.Update(ctx, "test", func(ctx context.Context, inner backend.Tx) error {
					second, err := page(ctx, inner)
					if first == "" || second == "" || first == second {
						t.Errorf("first %q, at the same time %q: want two different ones", first, second)
					}
					return err
				})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A pod that stands still in the middle of a transaction, frozen as it were, holds its rows for less time than others wait for a lock. What it did is undone.
func TestWhoStandsStillHoldsItsRowsForSeconds(t *testing.T) {
	url := analyzed.Database(t)
	b := open(t, url)
	defer b.Close()
	err := b.Update(t.Context(), "test", func(ctx context.Context, still backend.Tx) error {
		if rows, err := still.TryLockWorkflows(ctx, []backend.WorkflowKey{live1}); err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return b.Update(ctx, "test", func(ctx context.Context, other backend.Tx) error {
			rows, err := other.LockWorkflows(ctx, []backend.WorkflowKey{live1})
			if err != nil || len(rows) != 1 {
				t.Errorf("the workflow was not free: %v, %v", rows, err)
			}
			return err
		})
	})
	if err == nil {
		t.Error("what it did was committed, although others had its rows")
	}
}

// S1 and S8: one look for unmet events goes over a slice of what is live, however much that is, and says where the next begins.
func TestUnmetEventsLookAtASliceAtATime(t *testing.T) {
	url := small.Database(t)
	execute(t, url, `INSERT INTO events SELECT nextval('event_number'), 1, 'acme', 'live', i::text, 'paid', ARRAY['order', i::text], '', 'x', sha256('x'), rdv_now(), rdv_now(),
		NULL, '', 'live', '', '', NULL, '', '', '', 0, '', '', NULL, false, 0, 0, NULL, false, 0, 0, false, '', '', '', '', '', '', '' FROM generate_series(1, 45000) i`,
		`INSERT INTO event_keys SELECT tenant, 'order', id, 'paid', number, live_since FROM events`,
		`INSERT INTO wait_keys VALUES ('acme', 'order', '44000', 'paid', 1, rdv_now())`)
	b, seen := observed(t, url)
	defer b.Close()
	var after int64
	var found []string
	for page := 1; ; page++ {
		var next int64
		plans := seen.during(t, func() {
			err := b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
				rows, n, err := tx.UnmetEvents(ctx, tx.Now(), after, 10)
				for _, e := range rows {
					found = append(found, e.ID)
				}
				next = n
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		if touched := judge(t, plans); touched > 20_100 {
			t.Errorf("page %d touched %.0f rows", page, touched)
		}
		if next == 0 {
			if page != 3 {
				t.Errorf("45,000 live events were seen in %d pages", page)
			}
			break
		}
		if next <= after {
			t.Fatalf("the page after %d leads to %d", after, next)
		}
		after = next
	}
	if len(found) != 1 || found[0] != "44000" {
		t.Errorf("found %v, want the one event that a wait is open for", found)
	}
}
