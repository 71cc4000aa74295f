package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// histories is history.md section 12, what is read. Legal order and kinds are in history_order.go, chains and lists in history_lists.go.
var histories = []Case{
	{Name: "HI-1 an unknown workflow has no records and head 0; from 0 and from 1 is the full read", Run: unknownWorkflow},
	{Name: "HI-2 a batch of mixed kinds reads back identical, in order, with one recorded_at", Run: mixedBatch},
	{Name: "HI-3 from the middle the suffix, at the head the last record, beyond it nothing", Run: fromTheMiddle},
	{Name: "HI-4 125 records in 5 batches read back complete, page by page", Run: fiveBatches},
	{Name: "HI-4 a page ends at 4 MiB and holds at least one record", Run: pageBytes},
	{Name: "HI-5 the whole history over the cap of records is refused and names ReadHistoryFrom", Run: overRecords},
	{Name: "HI-5 the whole history over the cap of bytes is refused and names ReadHistoryFrom", Run: overBytes},
	{Name: "HI-6 reading near the end of a long history touches only the page", Run: nearTheEnd},
	{Name: "HI-7 after close and reopen all is there and the next append is checked", Run: reopened, Durable: true},
	{Name: "HI-8 a damaged record is corrupt with its seq; pages without it still read", Run: damagedRecord},
}

func unknownWorkflow(t *testing.T, h *Harness) {
	f := h.Fix(t)
	eq(t, "full read", must(f.ReadHistory(ctx, "nobody"))(t, "read"), nil)
	for _, from := range []int64{-1, 0, 1, 2, rendezvous.MaxSeq} {
		eq(t, "page", must(f.ReadHistoryFrom(ctx, "nobody", from, 0))(t, "read"), store.HistoryPage{})
	}
	r := f.Start()
	r.AppendFree(r.Noted("a"), r.Noted("b"))
	full := r.History()
	eq(t, "records", len(full), 3)
	for _, from := range []int64{0, 1} {
		eq(t, fmt.Sprintf("page from %d", from), must(f.ReadHistoryFrom(ctx, r.WorkflowID, from, 0))(t, "read"),
			store.HistoryPage{Records: full, Head: 3})
	}
}

func mixedBatch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	h.Advance(1500 * time.Microsecond)
	begun := r.Begun("charge")
	begun.Payload, begun.ContentType, begun.Operator = []byte(`{"sum":3}`), "application/json", &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	failed := r.Failed("charge", true)
	failed.Payload = []byte{}
	again := r.Begun("charge")
	again.Attempt = 2
	finished := r.Done("charge")
	finished.Attempt, finished.Payload, finished.Source = 2, []byte("\x00\xff"), "bank"
	noted := r.Noted("so far")
	noted.Data = []byte(` {"name":"so far", "extra": {"b":1.0,"a":"<é>"} }`) // unknown members are kept, canonical
	batch := []rendezvous.Record{begun, failed, again, r.Waited(r.Wait("paid", "paid", K("order", "1"))), finished, noted, r.Withdrawn("paid")}
	a := store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: "batch of many kinds", Records: batch}
	out := must(f.Append(ctx, a, now))(t, "append")
	eq(t, "landed", []int64{out.FirstSeq, out.Head}, []int64{2, int64(1 + len(batch))})

	recorded := h.Now(t)
	var want []rendezvous.Record
	for i, rec := range batch {
		rec.Seq, rec.V, rec.Batch, rec.RecordedAt = int64(2+i), rendezvous.KindVersion, a.BatchID, recorded
		if rec.Kind.Phase() != rendezvous.PhaseNone && rec.Attempt == 0 {
			rec.Attempt = 1
		}
		if rec.Data == nil {
			rec.Data = []byte("{}")
		}
		want = append(want, rec)
	}
	want[5].Data = []byte(`{"extra":{"a":"<é>","b":1.0},"name":"so far"}`)
	got := r.History()[1:]
	eq(t, "records", got, want)
	for i, rec := range got {
		SamePayload(t, rec.Payload, batch[i].Payload)
	}
}

func fromTheMiddle(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	page := must(f.ReadHistoryFrom(ctx, r.WorkflowID, 2, 0))(t, "read from 2 of one record")
	eq(t, "page beyond one record", page, store.HistoryPage{Head: 1})
	r.AppendFree(r.Noted("2"), r.Noted("3"), r.Noted("4"), r.Noted("5"))
	full := r.History()
	for from, want := range map[int64][]rendezvous.Record{3: full[2:], 5: full[4:], 6: nil, rendezvous.MaxSeq: nil} {
		page := must(f.ReadHistoryFrom(ctx, r.WorkflowID, from, 0))(t, "read")
		eq(t, fmt.Sprintf("page from %d", from), page, store.HistoryPage{Records: want, Head: 5})
	}
	page = must(f.ReadHistoryFrom(ctx, r.WorkflowID, 2, 2))(t, "read two")
	eq(t, "two from the middle", page, store.HistoryPage{Records: full[1:3], Head: 5, More: true})
	page = must(f.ReadHistoryPage(ctx, r.WorkflowID, 2, 10, 1))(t, "read a byte")
	eq(t, "of a byte one record all the same", page, store.HistoryPage{Records: full[1:2], Head: 5, More: true})
	page = must(f.ReadHistoryPage(ctx, r.WorkflowID, 2, 10, rendezvous.MaxHistoryBytes))(t, "read all that is allowed")
	eq(t, "of enough bytes the rest", page, store.HistoryPage{Records: full[1:], Head: 5})
	for _, bytes := range []int{0, -1, rendezvous.MaxHistoryBytes + 1} {
		_, err := f.ReadHistoryPage(ctx, r.WorkflowID, 2, 10, bytes)
		code(t, fmt.Sprintf("a page of %d bytes", bytes), err, rendezvous.CodeInvalid)
	}
}

func fiveBatches(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	head := int64(1)
	for b := range 5 {
		var records []rendezvous.Record
		for i := range 25 {
			rec := r.Noted(fmt.Sprintf("%d.%d", b, i))
			rec.Payload = fmt.Appendf(nil, "payload %d.%d", b, i)
			records = append(records, rec)
		}
		h.Advance(time.Second)
		out := must(f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: head, BatchID: ID("batch"), Records: records}, now))(t, "append")
		eq(t, "first seq", out.FirstSeq, head+1)
		eq(t, "head", out.Head, head+25)
		head = out.Head
	}
	full := r.History()
	eq(t, "records", len(full), 126)
	for i, rec := range full {
		eq(t, "seq", rec.Seq, int64(i+1))
		if i > 0 {
			eq(t, "payload", string(rec.Payload), fmt.Sprintf("payload %d.%d", (i-1)/25, (i-1)%25))
		}
	}
	for _, limit := range []int{1, 7, 25, 126, 200} {
		eq(t, fmt.Sprintf("walked in pages of %d", limit), r.walk(limit), full)
	}
}

// walk reads the history page by page; more must be false only at the end.
func (r *Flow) walk(limit int) []rendezvous.Record {
	r.F.T.Helper()
	var all []rendezvous.Record
	for from := int64(1); ; {
		page := must(r.F.ReadHistoryFrom(ctx, r.WorkflowID, from, limit))(r.F.T, "read a page")
		if len(page.Records) == 0 || limit > 0 && len(page.Records) > limit {
			r.F.T.Fatalf("a page of %d records from %d, limit %d", len(page.Records), from, limit)
		}
		all = append(all, page.Records...)
		last := page.Records[len(page.Records)-1].Seq
		eq(r.F.T, "more", page.More, last < page.Head)
		if !page.More {
			return all
		}
		from = last + 1
	}
}

// fill appends notes of that many bytes each, in batches.
func (r *Flow) fill(records, size int) {
	r.F.T.Helper()
	payload := bytes.Repeat([]byte("x"), size)
	batch := rendezvous.MaxAppendRecords
	if size > 0 {
		batch = min(batch, (rendezvous.MaxAppendBytes-1)/(size+100))
	}
	head := r.Head()
	for left := records; left > 0; {
		var notes []rendezvous.Record
		for range min(left, batch) {
			rec := r.Noted("n")
			if size > 0 {
				rec.Payload = payload
			}
			notes = append(notes, rec)
		}
		out := must(r.F.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: head, BatchID: ID("batch"), Records: notes}, now))(r.F.T, "append")
		head, left = out.Head, left-len(notes)
	}
}

func pageBytes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.fill(9, rendezvous.MaxPayload)
	page := must(f.ReadHistoryFrom(ctx, r.WorkflowID, 2, 0))(t, "read")
	if n := len(page.Records); n < 3 || n > 4 { // their data counts too
		t.Fatalf("%d records of 1 MiB in a page of 4 MiB", n)
	}
	eq(t, "more", page.More, true)
	eq(t, "records walked", len(r.walk(0)), 10)
}

func overRecords(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.fill(rendezvous.MaxFullHistory-1, 0)
	eq(t, "records at the cap", len(r.History()), rendezvous.MaxFullHistory)
	r.fill(1, 0)
	_, err := f.ReadHistory(ctx, r.WorkflowID)
	r.wantTooLong(err, rendezvous.MaxFullHistory, rendezvous.MaxFullHistory+1)
}

func overBytes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.fill(rendezvous.MaxFullBytes/rendezvous.MaxPayload, rendezvous.MaxPayload)
	_, err := f.ReadHistory(ctx, r.WorkflowID)
	r.wantTooLong(err, rendezvous.MaxFullBytes, nil)
}

func (r *Flow) wantTooLong(err error, limit int, value any) {
	t := r.F.T
	t.Helper()
	code(t, "the full read", err, rendezvous.CodeTooLarge, "limit", limit)
	if value != nil {
		code(t, "the full read", err, rendezvous.CodeTooLarge, "value", value)
	}
	if !strings.Contains(err.Error(), "ReadHistoryFrom") {
		t.Fatalf("the error names no way out: %v", err)
	}
	page := must(r.F.ReadHistoryFrom(ctx, r.WorkflowID, 1, 10))(t, "read a page")
	if len(page.Records) == 0 {
		t.Fatal("the pages do not read")
	}
}

// nearTheEnd compares a page near the end of a long history with one of a short one. The plan itself is each database's to assert.
func nearTheEnd(t *testing.T, h *Harness) {
	f := h.Fix(t)
	long, short := f.Start(), f.Start()
	long.fill(10_000, 0)
	short.fill(600, 0)
	read := func(r *Flow) (steps int) {
		h.Counting.Reset()
		from := r.Head() - 499
		h.Counting.Reset()
		steps = h.Steps(t, "read_history_from", func() {
			page := must(f.ReadHistoryFrom(ctx, r.WorkflowID, from, 500))(t, "read")
			eq(t, "records", len(page.Records), 500)
		})
		eq(t, "records touched", h.Counting.Counts().Records, int64(500))
		return steps
	}
	eq(t, "steps of the long one", read(long), read(short))
}

func reopened(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("open", "paid", K("order", "1"))
	r.Waits("answered", "paid", K("order", "2"))
	e := EventOf("paid", K("order", "2"))
	f.Send(e)
	d := r.Drive()
	d.Waits("parked", "paid", K("order", "3"))
	parked := EventOf("paid", K("order", "3"))
	f.Send(parked)
	live := f.PutNew("paid", K("order", "4"))
	history, rows, describe, chain := r.History(), r.Rows(), r.Describe(), must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")
	stored := f.Stored(live.EventID)

	h.Reopen(t)
	f = h.Fix(t)
	r.F = f
	eq(t, "history", r.History(), history)
	eq(t, "rows of waits", r.Rows(), rows)
	eq(t, "the chain", must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain"), chain)
	again := r.Describe()
	again.LeaseRemaining = describe.LeaseRemaining // it goes on meanwhile
	eq(t, "the workflow's row", again, describe)
	eq(t, "the live event", f.Stored(live.EventID), stored)
	f.WantState(parked.EventID, rendezvous.EventClaimed)

	stale := d.Batch(r.Noted("late"))
	stale.ExpectedSeq = 1
	_, err := f.Append(ctx, stale, now)
	code(t, "append at an old head", err, rendezvous.CodeConflict, "head", describe.Head)
	d.Append(r.Noted("on"))
	eq(t, "collected", len(d.Collect().Records), 1)
	r.WantAnswer("parked", parked)
	if f.Put(EventOf("paid")).Number <= stored.Number {
		t.Fatal("numbers do not go on rising")
	}
}

func damagedRecord(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	r.AppendFree(r.Noted("2"), r.Noted("3"), r.Noted("4"), r.Noted("5"))
	before := r.History()
	done(t, "damage record 3", h.Damage.Record(f.Name(), r.WorkflowID, 3))
	_, err := f.ReadHistory(ctx, r.WorkflowID)
	code(t, "full read", err, rendezvous.CodeCorrupt, "seq", 3, "workflow", r.WorkflowID, "tenant", f.Name())
	for _, from := range []int64{1, 2, 3} {
		_, err = f.ReadHistoryFrom(ctx, r.WorkflowID, from, 3)
		code(t, fmt.Sprintf("page from %d", from), err, rendezvous.CodeCorrupt, "seq", 3)
	}
	for _, p := range []struct{ from, limit int }{{1, 2}, {2, 1}, {4, 2}, {5, 5}} {
		page := must(f.ReadHistoryFrom(ctx, r.WorkflowID, int64(p.from), p.limit))(t, "read around the damage")
		eq(t, "page around the damage", page.Records, before[p.from-1:min(p.from-1+p.limit, 5)])
	}
	eq(t, "records of another workflow", len(other.History()), 1)
	other.AppendFree(other.Noted("on"))
}
