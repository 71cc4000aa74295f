package client_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// bury makes a dead letter of an event: the sweep of a day in which nobody wanted it.
func (p *plane) bury(t *testing.T, c *client.Client, id string) rendezvous.EventID {
	t.Helper()
	e := ok(client.NewEvent("urn:psp", "paid", client.JSON(1), key(id)))(t)
	e.ID = id
	ok(c.PutEvents(t.Context(), e))(t)
	swept := ok(p.store.SweepUnclaimed(t.Context(), time.Now().Add(time.Minute), time.Time{}, "", 0))(t)
	if len(swept.Retired) != 1 || swept.Retired[0].EventID != e.EventID {
		t.Fatalf("swept %+v", swept)
	}
	return e.EventID
}

func named(id rendezvous.EventID) wire.Selection {
	return wire.Selection{Events: []rendezvous.EventID{id}, Operator: &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}}
}

// SW-11, SW-14: a dead letter is listed, counted, requeued and purged, over either transport; requeued, the run that waits gets it.
func TestLettersOverBothTransports(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		ctx := t.Context()
		id := p.bury(t, c, "1")
		list := ok(c.ListLetters(ctx, wire.ListLetters{Filter: wire.LetterFilter{Reason: rendezvous.DeadUnclaimed}, IncludeData: true}))(t)
		eq(t, "letters listed", len(list.Letters), 1)
		eq(t, "its payload", string(list.Letters[0].Payload.Data), "1")
		n := ok(c.CountLetters(ctx, wire.CountLetters{ByReason: true}))(t)
		eq(t, "letters counted", n.ByReason[rendezvous.DeadUnclaimed], 1)

		ok(c.StartRun(ctx, wire.StartRun{WorkflowID: "w", RunID: "r", Type: "order", Queue: "by-hand"}))(t)
		ok(c.RegisterWait(ctx, wire.RegisterWait{RunID: "r", Effect: "pay", Type: "paid", Keys: []rendezvous.Key{key("1")}}))(t)
		eq(t, "requeued", ok(c.RequeueLetters(ctx, wire.RequeueLetters{Selection: named(id)}))(t).Results[0].Outcome, string(store.RequeueRequeued))
		answered := ok(c.HistoryPage(ctx, wire.ReadHistory{WorkflowID: "w", FromSeq: 3, WaitMS: 30_000}))(t) // until the event meets its wait
		if len(answered.Records) != 1 || answered.Records[0].Kind != rendezvous.WaitAnswered {
			t.Fatalf("the history goes on with %+v", answered.Records)
		}
		eq(t, "what is consumed", ok(c.RequeueLetters(ctx, wire.RequeueLetters{Selection: named(id)}))(t).Results[0].State, rendezvous.EventConsumed)
		eq(t, "purged", ok(c.PurgeLetters(ctx, wire.PurgeLetters{Selection: named(p.bury(t, c, "2"))}))(t).Results[0].Outcome, string(store.RequeuePurged))
		eq(t, "letters left", ok(c.CountLetters(ctx, wire.CountLetters{}))(t).Count, 0)
		eq(t, "a wait that goes on by itself", ok(c.RetryWait(ctx, wire.RetryWait{RunID: "r", Effect: "pay"}))(t).Outcome, wire.NotQuarantined)
	})
}

// I17: the reply of a requeue is lost after it was done: the client calls again under the same op, which nobody had to name, and is told that it is requeued.
func TestARequeueWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	id := p.bury(t, c, "1")
	p.faults.set(func(verb string, n int) fault {
		if verb == "deadletters.requeue" && n == 1 {
			return loseReply
		}
		return none
	})
	done := ok(c.RequeueLetters(t.Context(), wire.RequeueLetters{Selection: named(id)}))(t)
	eq(t, "outcome", done.Results[0].Outcome, string(store.RequeueRequeued))
	eq(t, "calls", p.faults.count("deadletters.requeue"), 2)
	eq(t, "requeues", ok(c.GetEvent(t.Context(), id, false))(t).Requeues, 1)
}
