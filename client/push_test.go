package client_test

import (
	"errors"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// PU-75, I17: the reply of a rotation is lost after it was done: the client calls again under the same op, which nobody had to name, and gets the same key.
func TestPU75ARotationWhoseReplyIsLostIsDoneOnce(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	ctx := t.Context()
	ok(c.StartRun(ctx, wire.StartRun{WorkflowID: "w", RunID: "r", Type: "order", Queue: "by-hand"}))(t)
	ok(c.PutPush(ctx, wire.PutPush{RunID: "r", URL: "https://example.org/"}))(t)
	p.faults.set(func(verb string, n int) fault {
		if verb == "push.rotate" && n == 1 {
			return loseReply
		}
		return none
	})
	got := ok(c.RotatePush(ctx, wire.RotatePush{PushRef: wire.PushRef{RunID: "r"}}))(t)
	eq(t, "calls", p.faults.count("push.rotate"), 2)
	eq(t, "again", got.Again, true)
	eq(t, "a key", got.Key.Set(), true)
	eq(t, "keys", len(ok(c.GetPush(ctx, wire.PushRef{RunID: "r"}))(t).Signing), 1)
	eq(t, "registrations", len(ok(c.ListPush(ctx, "r"))(t).Registrations), 1)
	ok(c.DeletePush(ctx, wire.PushRef{RunID: "r"}))(t)
	if _, err := c.GetPush(ctx, wire.PushRef{RunID: "r"}); !errors.Is(err, rendezvous.ErrNotFound) {
		t.Errorf("after its end: %v", err)
	}
}
