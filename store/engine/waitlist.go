package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// numberPosition is where a list by number goes on.
type numberPosition struct {
	Number int64 `json:"number"`
}

func (p *numberPosition) sound() bool { return p.Number > 0 }

// Waiting implements [store.Waits].
func (t *tenant) Waiting(ctx context.Context, f store.WaitFilter, limit int, cursor string) (store.WaitPage, error) {
	const verb = "waiting"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.WaitPage{}, err
	}
	if err := checkWaitFilter(f); err != nil {
		return store.WaitPage{}, err
	}
	var after numberPosition
	if err := decodeCursor(cursor, verb, t.name, f, &after); err != nil {
		return store.WaitPage{}, err
	}
	var page store.WaitPage
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, next, err := r.ListWaits(ctx, t.name, backend.WaitFilter(f), after.Number, backend.Span{Limit: limit, Look: t.look})
		if err != nil {
			return err
		}
		page = store.WaitPage{Waits: waitRows(rows)}
		if next != 0 {
			page.NextCursor = encodeCursor(verb, t.name, f, numberPosition{Number: next})
		}
		return nil
	})
	if err != nil {
		return store.WaitPage{}, err
	}
	return page, nil
}

func waitRows(rows []*backend.Wait) []store.WaitRow {
	shown := make([]store.WaitRow, len(rows))
	for i, w := range rows {
		shown[i] = waitRow(w)
	}
	return shown
}

func checkWaitFilter(f store.WaitFilter) error {
	if f.RunID != "" {
		if err := rendezvous.CheckID("run_id", f.RunID); err != nil {
			return err
		}
	}
	if f.Type != "" {
		if err := rendezvous.CheckID("type", f.Type); err != nil {
			return err
		}
	}
	if f.Key != nil {
		if _, err := rendezvous.CheckKeys([]rendezvous.Key{*f.Key}); err != nil {
			return err
		}
	}
	switch f.State {
	case "", rendezvous.WaitOpen, rendezvous.WaitParked, rendezvous.WaitQuarantined:
		return nil
	}
	return rendezvous.InvalidField("state", "%q is none of open, parked, quarantined", f.State)
}

// waitRow is a wait as lists show it: its own keys and from, never the event's (O5).
func waitRow(w *backend.Wait) store.WaitRow {
	row := store.WaitRow{
		Number: w.Number, Wait: waitOf(w), WorkflowID: w.WorkflowID, State: waitState(w), RegisteredAt: w.RegisteredAt,
		ParkedAt: w.ParkedAt, Attempts: w.Attempts, NextAttemptAt: w.NextAttemptAt, LastError: w.LastError, QuarantinedAt: w.QuarantinedAt,
		Corrupt: w.Corrupt,
	}
	if w.Held != nil {
		row.Held = &rendezvous.EventID{Source: w.Held.Source, ID: w.Held.ID}
	}
	return row
}

// waitOf is the wait its run registered.
func waitOf(w *backend.Wait) rendezvous.Wait {
	return rendezvous.Wait{
		WaitID:  rendezvous.WaitID{RunID: w.RunID, Effect: w.Effect},
		Attempt: w.Attempt, Type: w.Type, Keys: w.Keys, From: w.From, Trace: w.Trace, Deadline: w.Deadline,
	}
}

func waitState(w *backend.Wait) rendezvous.WaitState {
	switch {
	case w.Held == nil:
		return rendezvous.WaitOpen
	case w.QuarantinedAt.IsZero():
		return rendezvous.WaitParked
	}
	return rendezvous.WaitQuarantined
}
