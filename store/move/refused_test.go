package move_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// filled is a store in memory with everything in it.
func filled(t *testing.T) (*memory.Backend, *storetest.Harness, *world) {
	t.Helper()
	c := now()
	b := inMemory(c)
	h := storetest.Assemble(t, b, storetest.Options{Advance: c.Advance, Damage: b.Damage()})
	return b, h, fill(t, h)
}

// wantRefused fails the test unless the error is of that code and says so.
func wantRefused(t *testing.T, err error, code rendezvous.Code, says string) {
	t.Helper()
	if rendezvous.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %s saying %q", err, code, says)
	}
}

// at calls back once, at the n-th step of a kind.
func at(step move.Step, kind backend.Kind, n int, fn func()) func(move.Progress) {
	return func(p move.Progress) {
		if p.Step == step && p.Kind == kind {
			if n--; n == 0 {
				fn()
			}
		}
	}
}

// interrupted is a copy that is given up in the middle.
func interrupted(t *testing.T, from, to backend.Backend) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := move.Copy(ctx, from, to, move.Options{From: "there", To: "here", Rows: 2, Watch: at(move.Copying, backend.Events, 4, cancel)})
	wantRefused(t, err, rendezvous.CodeUnavailable, "given up")
}

// A store that is half copied opens for nothing but going on with that, from the same source.
func TestAHalfCopiedStoreIsRefused(t *testing.T) {
	t.Parallel()
	from, _, _ := filled(t)
	dir, url := t.TempDir(), migrated.Database(t)
	here := embedded(t, dir, now())
	interrupted(t, from, here)
	_, err := move.Copy(t.Context(), from, here, move.Options{From: "elsewhere", To: "here"})
	wantRefused(t, err, rendezvous.CodeInvalid, "half copied from there")
	_, err = move.Copy(t.Context(), here, inMemory(now()), move.Options{From: "here", To: "nowhere"})
	wantRefused(t, err, rendezvous.CodeInvalid, "half copied from there")
	closed(t, here)
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir}); err == nil {
		t.Error("half a store was opened")
	} else {
		wantRefused(t, err, rendezvous.CodeInvalid, "rendezvous migrate copy")
	}
	there := server(t, url)
	interrupted(t, from, there)
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: url}); err == nil {
		t.Error("half a store was opened")
	} else {
		wantRefused(t, err, rendezvous.CodeInvalid, "half copied from there")
	}
	here = embedded(t, dir, now())
	for _, b := range []backend.Backend{here, there} {
		copied(t, from, b)
		closed(t, b)
	}
	b, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, b)
	c, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, c)
}

func TestWhatCannotBeCopiedIsRefused(t *testing.T) {
	t.Parallel()
	from, h, w := filled(t)
	full := inMemory(now())
	copied(t, from, full)
	_, err := move.Copy(t.Context(), from, full, move.Options{From: "there", To: "here"})
	wantRefused(t, err, rendezvous.CodeInvalid, "here is not empty: it has workflows")
	_, err = move.Copy(t.Context(), from, memory.Open(now(), 8), move.Options{From: "there", To: "here"})
	wantRefused(t, err, rendezvous.CodeInvalid, "there has 64 shards and here has 8")

	if err := h.Damage.Event("acme", w.alone.EventID); err != nil {
		t.Fatal(err)
	}
	_, err = move.Copy(t.Context(), from, inMemory(now()), move.Options{From: "there", To: "here"})
	wantRefused(t, err, rendezvous.CodeCorrupt, w.alone.ID)
	if err := h.Damage.Record("acme", w.free.WorkflowID, 2); err != nil {
		t.Fatal(err)
	}
	_, err = move.Copy(t.Context(), from, inMemory(now()), move.Options{From: "there", To: "here"})
	wantRefused(t, err, rendezvous.CodeCorrupt, "seq:2")
}

// A source that changes while it is copied, or between two halves of a copy, is noticed whatever changes in it; so is a target.
func TestChangesMeanwhileAreNoticed(t *testing.T) {
	t.Parallel()
	for _, kind := range []backend.Kind{backend.Runs, backend.Waits, backend.Marks} {
		from, h, _ := filled(t)
		change := func() { h.FixOf(t, "acme").PutNew("late") }
		_, err := move.Copy(t.Context(), from, inMemory(now()), move.Options{From: "there", To: "here", Rows: 2, Watch: at(move.Copying, kind, 2, change)})
		if kind == backend.Runs { // the event was there when events were copied
			if err != nil {
				t.Error(err)
			}
		} else {
			wantRefused(t, err, rendezvous.CodeInvalid, "there changed while it was copied (events: ")
		}
		to := inMemory(now())
		interrupted(t, from, to)
		call(t)(h.FixOf(t, "acme").RetryWait(t.Context(), quarantinedOf(t, h), kim))
		_, err = move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here"})
		if err != nil && !strings.Contains(err.Error(), "of another content") { // of waits, if those were copied
			t.Error(err)
		}
	}
	from, _, _ := filled(t)
	to := inMemory(now())
	write := func() {
		h := storetest.Assemble(t, to, storetest.Options{})
		h.Fix(t).PutNew("early")
	}
	_, err := move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here", Rows: 2, Watch: at(move.Copying, backend.Marks, 1, write)})
	wantRefused(t, err, rendezvous.CodeCorrupt, "here does not hold what was copied (events: ")
}

func quarantinedOf(t *testing.T, h *storetest.Harness) rendezvous.WaitID {
	t.Helper()
	page, err := h.FixOf(t, "acme").QuarantinedWaits(t.Context(), 0, "")
	if err != nil || len(page.Waits) == 0 {
		t.Fatal(err, page)
	}
	return page.Waits[0].WaitID
}

// Two copies to one store: one goes on, the other is told.
func TestTwoCopiesToOneStoreDoNotMix(t *testing.T) {
	t.Parallel()
	from, _, _ := filled(t)
	url := migrated.Database(t)
	to := server(t, url)
	defer closed(t, to)
	second := func() {
		if _, err := move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here"}); err != nil {
			t.Error(err)
		}
	}
	_, err := move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here", Rows: 2, Watch: at(move.Copying, backend.History, 3, second)})
	wantRefused(t, err, rendezvous.CodeInvalid, "another copy to here is under way")
}

// What a row in the way of a copy is, is told; a value that the target does not take too, with the place.
func TestARowInTheWayIsTold(t *testing.T) {
	t.Parallel()
	from, _, w := filled(t)
	url := migrated.Database(t)
	to := server(t, url)
	defer closed(t, to)
	block := func() {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), `INSERT INTO runs VALUES ('acme', $1, 'x', '', '', 'running', 1, 0, now(), NULL, NULL, '', NULL, NULL)`, w.free.ID)
			err = errors.Join(err, conn.Close(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	}
	_, err := move.Copy(t.Context(), from, to, move.Options{From: "there", To: "here", Watch: at(move.Copying, backend.Workflows, 2, block)})
	wantRefused(t, err, rendezvous.CodeInvalid, "copying runs to here, the first ones: ")
	wantRefused(t, err, rendezvous.CodeInvalid, "rows that this copy did not write")
}
