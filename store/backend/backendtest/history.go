package backendtest

import (
	"bytes"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var historyCases = []backendCase{
	{"records come back as they went in", records},
	{"a page of history ends at its bounds and holds at least one", historyPages},
	{"a kind or version of another build is marked and kept", unknownKinds},
	{"records are found by effect and by seq", recordsByIndex},
	{"open effects and the last failure are found by run", openEffects},
}

func records(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	full := effect(w, 2, rendezvous.EffectDone, "charge", 3, map[string]any{"b": 1, "a": "é<>&"}, at)
	full.Payload, full.ContentType, full.Source, full.Batch = []byte("\x00result\xff"), "application/octet-stream", "bank", "b1"
	full.Operator = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisConnected}
	empty := record(w, 3, rendezvous.Note, rendezvous.NameData{Name: "n"}, at)
	empty.Payload = []byte{}
	x.apply(&backend.Changes{Records: []*backend.Record{full, empty}}, w.Key())
	x.view(func(r backend.Reader) {
		rows := got(r.History(ctx, w.Key(), 2, 0, 10, 1<<20))(x)
		eq(x, "records", rows, []rendezvous.Record{full.Record, empty.Record})
		eq(x, "canonical data, byte for byte", string(rows[0].Data), string(full.Data))
		if rows[1].Payload == nil {
			x.Fatal("an empty payload came back as none")
		}
		first := got(r.History(ctx, w.Key(), 1, 1, 10, 1<<20))(x)[0]
		if first.Payload != nil {
			x.Fatal("no payload came back as an empty one")
		}
		n, size, err := r.HistorySize(ctx, w.Key())
		if err != nil {
			x.Fatal(err)
		}
		eq(x, "number of records", n, int64(3))
		eq(x, "bytes", size, int64(len(first.Data)+len(full.Data)+len(full.Payload)+len(empty.Data)))
		eq(x, "history of another tenant", got(r.History(ctx, flowKey(globex, w.ID), 1, 0, 10, 1<<20))(x), nil)
		n, size, err = r.HistorySize(ctx, flowKey(globex, w.ID))
		if n != 0 || size != 0 || err != nil {
			x.Fatalf("size of nothing: %d, %d, %v", n, size, err)
		}
	})
}

func historyPages(x *bench) {
	w := x.flow(acme, "1")
	var rows []*backend.Record
	for seq := int64(2); seq <= 6; seq++ {
		r := record(w, seq, rendezvous.Note, rendezvous.NameData{Name: "n"}, x.now())
		r.Payload = bytes.Repeat([]byte("x"), 100-len(r.Data))
		rows = append(rows, r)
	}
	x.apply(&backend.Changes{Records: rows}, w.Key())
	page := func(from, to int64, limit, most int) []int64 {
		x.Helper()
		var seqs []int64
		x.view(func(r backend.Reader) {
			for _, rec := range got(r.History(ctx, w.Key(), from, to, limit, most))(x) {
				seqs = append(seqs, rec.Seq)
			}
		})
		return seqs
	}
	eq(x, "all", page(0, 0, 10, 1<<20), []int64{1, 2, 3, 4, 5, 6})
	eq(x, "from the middle", page(4, 0, 10, 1<<20), []int64{4, 5, 6})
	eq(x, "to the middle", page(2, 3, 10, 1<<20), []int64{2, 3})
	eq(x, "three at most", page(2, 0, 3, 1<<20), []int64{2, 3, 4})
	eq(x, "beyond the head", page(7, 0, 10, 1<<20), nil)
	eq(x, "300 bytes at most", page(2, 0, 10, 300), []int64{2, 3, 4})
	eq(x, "299 bytes at most", page(2, 0, 10, 299), []int64{2, 3})
	eq(x, "less than one record", page(2, 0, 10, 1), []int64{2})
}

func unknownKinds(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	kind := record(w, 2, "note.shouted", map[string]any{"loud": true}, at)
	version := record(w, 3, rendezvous.Note, map[string]any{"names": []string{"a"}}, at)
	version.V = 2
	x.apply(&backend.Changes{Records: []*backend.Record{kind, version}}, w.Key())
	x.view(func(r backend.Reader) {
		rows := got(r.History(ctx, w.Key(), 1, 0, 10, 1<<20))(x)
		eq(x, "marks", []bool{rows[0].Unknown, rows[1].Unknown, rows[2].Unknown}, []bool{false, true, true})
		kind.Unknown, version.Unknown = true, true
		eq(x, "records", rows[1:], []rendezvous.Record{kind.Record, version.Record})
	})
}

func recordsByIndex(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	named := rendezvous.NameData{Name: "charge"}
	open := effect(w, 2, rendezvous.EffectStarted, "a", 1, named, at)
	open.Payload = []byte("arguments")
	failed := effect(w, 3, rendezvous.EffectFailed, "a", 1, rendezvous.EffectFailedData{Code: "x", Retryable: true}, at)
	again := effect(w, 4, rendezvous.EffectStarted, "a", 2, named, at)
	wait := effect(w, 5, rendezvous.WaitRegistered, "b", 1, rendezvous.WaitRegisteredData{Type: "paid"}, at)
	x.apply(&backend.Changes{Records: []*backend.Record{open, failed, again, wait}}, w.Key())
	x.view(func(r backend.Reader) {
		key := func(tenant, run, effect string) backend.WaitKey {
			return backend.WaitKey{Tenant: tenant, RunID: run, Effect: effect}
		}
		rows := got(r.Effects(ctx, []backend.WaitKey{
			key(acme, "r1", "a"), key(acme, "r1", "b"), key(acme, "r1", "c"), key(acme, "r2", "a"), key(globex, "r1", "a"), key(acme, "r1", "a"),
		}))(x)
		bare := open.Record
		bare.Payload = nil
		eq(x, "effects", rows, map[backend.WaitKey][]rendezvous.Record{
			key(acme, "r1", "a"): {bare, failed.Record, again.Record}, key(acme, "r1", "b"): {wait.Record},
		})
		at := func(tenant string, seq int64) backend.RecordKey {
			return backend.RecordKey{Tenant: tenant, WorkflowID: w.ID, Seq: seq}
		}
		eq(x, "records", got(r.RecordsAt(ctx, []backend.RecordKey{at(acme, 2), at(acme, 9), at(globex, 2), at(acme, 5)}))(x),
			map[backend.RecordKey]rendezvous.Record{at(acme, 2): open.Record, at(acme, 5): wait.Record})
	})
}

func openEffects(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	named := rendezvous.NameData{Name: "charge"}
	final, retryable := rendezvous.EffectFailedData{Code: "final"}, rendezvous.EffectFailedData{Code: "again", Retryable: true}
	x.apply(&backend.Changes{Records: []*backend.Record{
		effect(w, 2, rendezvous.EffectStarted, "a", 1, named, at),
		effect(w, 3, rendezvous.EffectStarted, "b", 1, named, at),
		effect(w, 4, rendezvous.EffectStarted, "c", 1, named, at),
		effect(w, 5, rendezvous.WaitRegistered, "wait", 1, rendezvous.WaitRegisteredData{Type: "paid"}, at),
		effect(w, 6, rendezvous.EffectFailed, "a", 1, final, at),
		effect(w, 7, rendezvous.EffectFailed, "b", 1, retryable, at),
	}}, w.Key())
	ask := func() (open []int64, last string) {
		x.Helper()
		x.view(func(r backend.Reader) {
			for _, rec := range got(r.OpenEffects(ctx, runKey(acme, "r1"), 10))(x) {
				open = append(open, rec.Seq)
			}
			last = got(r.LastFailure(ctx, runKey(acme, "r1")))(x)
		})
		return open, last
	}
	open, last := ask()
	eq(x, "open effects", open, []int64{4})
	eq(x, "last failure", last, "a")
	x.apply(&backend.Changes{Records: []*backend.Record{
		effect(w, 8, rendezvous.EffectStarted, "b", 2, named, at), effect(w, 9, rendezvous.EffectFailed, "b", 2, final, at),
		effect(w, 10, rendezvous.EffectStarted, "a", 2, named, at),
	}}, w.Key())
	open, last = ask()
	eq(x, "open effects", open, []int64{4, 10})
	eq(x, "last failure", last, "b")
	x.view(func(r backend.Reader) {
		eq(x, "one open effect", len(got(r.OpenEffects(ctx, runKey(acme, "r1"), 1))(x)), 1)
		eq(x, "open effects of another tenant", len(got(r.OpenEffects(ctx, runKey(globex, "r1"), 10))(x)), 0)
	})
	x.apply(&backend.Changes{Records: []*backend.Record{
		effect(w, 11, rendezvous.EffectStarted, "b", 3, named, at), effect(w, 12, rendezvous.EffectDone, "b", 3, struct{}{}, at),
	}}, w.Key())
	_, last = ask()
	eq(x, "last failure once b was done", last, "a")
}
