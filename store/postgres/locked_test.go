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
			rows, _, err := tx.DueParked(ctx, 1)
			if err != nil || len(rows) == 0 {
				return "", err
			}
			return rows[0].RunID, nil
		},
		"DueWoken": func(ctx context.Context, tx backend.Tx) (string, error) {
			rows, _, err := tx.DueWoken(ctx, 1)
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
