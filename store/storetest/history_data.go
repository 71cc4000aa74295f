package storetest

import (
	"fmt"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// historyData is what of a record's data counts, in appends that somebody else than this plane wrote.
var historyData = []Case{
	{Name: "HI-9 members of a record's data match in their exact names, nested ones too", Run: exactMembers},
	{Name: "HI-9 a member in another letter case is unknown: it is kept and does nothing", Run: otherCase},
	{Name: "HI-9 half of a surrogate pair in a record's data is refused for every kind", Run: loneSurrogates},
}

// exactMembers: a wait is on the keys of its history and of no member that only looks like them (EV-19).
func exactMembers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for i, keys := range []string{"\u212aeys", "Keys", "KEYS", `\u212aeys`} {
		r, o := f.Start(), fmt.Sprint("o", i)
		w := r.Waited(r.Wait("w", "paid"))
		w.Data = []byte(`{"type":"paid","keys":[{"namespace":"` + o + `","value":"1","Value":"2"}],"` + keys + `":[{"namespace":"` + o + `","value":"2"}],"TYPE":"other"}`)
		r.AppendFree(w)
		row := r.Row("w")
		eq(t, keys+": type", row.Type, "paid")
		eq(t, keys+": keys", fmt.Sprint(row.Keys), fmt.Sprint([]rendezvous.Key{K(o, "1")}))
		f.Send(EventOf("paid", K(o, "2")))
		r.WantOpen("w")
		e := EventOf("paid", K(o, "1"))
		f.Send(e)
		r.WantAnswer("w", e)
		again := r.Wait("w", "paid", K(o, "1"))
		eq(t, keys+": registered again", must(f.RegisterWait(ctx, store.Registration{Wait: again}, now))(t, "register again").Outcome, store.RegisterAnswered)
	}
}

func otherCase(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	bare := r.Waited(r.Wait("w", "paid"))
	for what, rec := range map[string]rendezvous.Record{
		"a note without its name":    {RunID: r.ID, Kind: rendezvous.Note, Data: []byte(`{"NAME":"y"}`)},
		"an effect without its name": {RunID: r.ID, Kind: rendezvous.EffectStarted, Effect: "a", Data: []byte(`{"Name":"y"}`)},
		"a wait without its type":    {RunID: r.ID, Kind: rendezvous.WaitRegistered, Effect: "w", Data: []byte(`{"Type":"paid","keys":[]}`)},
		"a key without its value":    {RunID: r.ID, Kind: rendezvous.WaitRegistered, Effect: "w", Data: []byte(`{"type":"paid","keys":[{"namespace":"o","VALUE":"1"}]}`)},
		"a failure without its code": {RunID: r.ID, Kind: rendezvous.RunFailed, Data: []byte(`{"Code":"c","reason":"r"}`)},
	} {
		r.unwritten(what, rendezvous.CodeInvalid, recs(rec))
	}
	bare.Data = []byte(`{"type":"paid","keys":[],"Deadline":"2030-01-01T00:00:00Z","From":"shop"}`)
	r.AppendFree(bare)
	eq(t, "the data", string(r.History()[1].Data), `{"Deadline":"2030-01-01T00:00:00Z","From":"shop","keys":[],"type":"paid"}`)
	eq(t, "the wait's sender", r.Row("w").From, "")
}

// loneSurrogates: they would become U+FFFD, and two keys one (R4, EV-19).
func loneSurrogates(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Begun("a"), r.Waited(r.Wait("w", "paid")))
	for _, half := range []string{`\ud800`, `\uDBFF`, `\udc00x`, `\ud83d\ud83d`} {
		for kind, data := range map[rendezvous.Kind]string{
			rendezvous.WaitRegistered: `{"type":"paid","keys":[{"namespace":"o","value":"%s"}]}`,
			rendezvous.Note:           `{"name":"%s"}`,
			rendezvous.EffectDone:     `{"x":["%s"]}`,
			rendezvous.EffectFailed:   `{"code":"c","reason":"%s","retryable":false}`,
			rendezvous.WaitWithdrawn:  `{"reason":"%s"}`,
			rendezvous.RunCompleted:   `{"%s":1}`,
			rendezvous.RunPaused:      `{"reason":"%s"}`,
		} {
			rec := rendezvous.Record{RunID: r.ID, Kind: kind, Data: fmt.Appendf(nil, data, half)}
			switch kind {
			case rendezvous.WaitRegistered:
				rec.Effect = "v"
			case rendezvous.EffectDone, rendezvous.EffectFailed:
				rec.Effect = "a"
			case rendezvous.WaitWithdrawn:
				rec.Effect = "w"
			}
			r.unwritten(half+" in "+string(kind), rendezvous.CodeInvalid, recs(rec), "field", "data")
		}
	}
	whole := r.Noted("n")
	whole.Data = []byte(`{"name":"\ud83d\ude00 \\ud800 \ufffd"}`)
	r.AppendFree(whole)
	eq(t, "whole characters", string(r.History()[3].Data), "{\"name\":\"\U0001F600 \\\\ud800 \ufffd\"}")
}
