package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ReadHistory implements [store.Histories].
func (t *tenant) ReadHistory(ctx context.Context, workflowID string) ([]rendezvous.Record, error) {
	if err := rendezvous.CheckID("workflow_id", workflowID); err != nil {
		return nil, err
	}
	key := backend.WorkflowKey{Tenant: t.name, ID: workflowID}
	var records []rendezvous.Record
	err := t.view(ctx, "read_history", func(ctx context.Context, r backend.Reader) error {
		n, bytes, err := fullSize(ctx, r, key)
		if err != nil || n == 0 {
			return err
		}
		if records, err = r.History(ctx, key, 1, 0, int(n), int(bytes)); err != nil {
			return err
		}
		if int64(len(records)) != n {
			return gap(key, int64(len(records))+1)
		}
		return gapless(key, records, 1)
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// fullSize is the size of a history that may be read whole. The head tells the very long ones without looking at their records.
func fullSize(ctx context.Context, r backend.Reader, key backend.WorkflowKey) (records, bytes int64, err error) {
	rows, err := r.Workflows(ctx, []backend.WorkflowKey{key})
	if err != nil {
		return 0, 0, err
	}
	w := rows[key]
	if w == nil { // its records may not be gone yet
		return 0, 0, nil
	}
	if w.Corrupt == nil && w.Head > rendezvous.MaxFullHistory {
		return 0, 0, tooLong("records", rendezvous.MaxFullHistory, w.Head)
	}
	if records, bytes, err = r.HistorySize(ctx, key); err != nil {
		return 0, 0, err
	}
	if records > rendezvous.MaxFullHistory {
		return 0, 0, tooLong("records", rendezvous.MaxFullHistory, records)
	}
	if bytes > rendezvous.MaxFullBytes {
		return 0, 0, tooLong("bytes", rendezvous.MaxFullBytes, bytes)
	}
	return records, bytes, nil
}

// tooLong refuses to read a whole history (HI-5).
func tooLong(unit string, limit, value int64) error {
	return rendezvous.Errorf(rendezvous.CodeTooLarge, "the history has %d %s, over the limit of %d for one answer; read it in pages with ReadHistoryFrom", value,
		unit, limit).With("field", unit).With("limit", limit).With("value", value).With("use", "ReadHistoryFrom")
}

// ReadHistoryFrom implements [store.Histories].
func (t *tenant) ReadHistoryFrom(ctx context.Context, workflowID string, fromSeq int64, limit int) (store.HistoryPage, error) {
	return t.ReadHistoryPage(ctx, workflowID, fromSeq, limit, rendezvous.MaxHistoryBytes)
}

// ReadHistoryPage implements [store.Histories].
func (t *tenant) ReadHistoryPage(ctx context.Context, workflowID string, fromSeq int64, limit, bytes int) (store.HistoryPage, error) {
	if err := rendezvous.CheckID("workflow_id", workflowID); err != nil {
		return store.HistoryPage{}, err
	}
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultHistory, rendezvous.MaxHistoryPage)
	if err != nil {
		return store.HistoryPage{}, err
	}
	if bytes < 1 || bytes > rendezvous.MaxHistoryBytes {
		return store.HistoryPage{}, rendezvous.InvalidField("bytes", "%d is outside 1..%d", bytes, rendezvous.MaxHistoryBytes).With("limit", rendezvous.MaxHistoryBytes).With("value", bytes)
	}
	key, from := backend.WorkflowKey{Tenant: t.name, ID: workflowID}, max(fromSeq, 1)
	var page store.HistoryPage
	err = t.view(ctx, "read_history_from", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Workflows(ctx, []backend.WorkflowKey{key})
		if err != nil {
			return err
		}
		w := rows[key]
		if w == nil {
			return nil
		}
		if w.Corrupt != nil {
			return w.Corrupt
		}
		page, err = readPage(ctx, r, w, from, limit, bytes)
		return err
	})
	if err != nil {
		return store.HistoryPage{}, err
	}
	return page, nil
}

// readPage reads an index range: its cost follows the page (HI-6). A cursor beyond the head is no mistake here (HI-3).
func readPage(ctx context.Context, r backend.Reader, w *backend.Workflow, from int64, limit, bytes int) (store.HistoryPage, error) {
	page := store.HistoryPage{Head: w.Head}
	if from > w.Head {
		return page, nil
	}
	records, err := r.History(ctx, w.Key(), from, 0, limit, bytes)
	if err != nil {
		return store.HistoryPage{}, err
	}
	if len(records) == 0 {
		return store.HistoryPage{}, gap(w.Key(), from)
	}
	if err := gapless(w.Key(), records, from); err != nil {
		return store.HistoryPage{}, err
	}
	page.Records, page.More = records, records[len(records)-1].Seq < w.Head
	return page, nil
}

// gapless judges that records are numbered from on without a gap: a history is never answered shortened or holed (history.md section 10).
func gapless(key backend.WorkflowKey, records []rendezvous.Record, from int64) error {
	for i, r := range records {
		if want := from + int64(i); r.Seq != want {
			return gap(key, want)
		}
	}
	return nil
}

func gap(key backend.WorkflowKey, seq int64) error {
	return rendezvous.Errorf(rendezvous.CodeCorrupt, "record %d of workflow %q is missing; restore it before going on", seq, key.ID).
		With("tenant", key.Tenant).With("workflow", key.ID).With("seq", seq)
}
