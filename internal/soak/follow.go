package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	followedAtOnce = 40
	stepMost       = 1500 * time.Millisecond // between two steps of a run
	hooksMost      = 5                       // of a run

	shareReplaced = 0.45 // of what is done to registrations is another key,
	shareDeleted  = 0.15 // their end; else they are parked
)

// tellFollowed tells the story of a followed run.
func (l *load) tellFollowed(ctx context.Context, n uint64, rng *mathrand.Rand) {
	c := &story{load: l, access: l.access[rng.IntN(len(l.access))], rng: rng, id: fmt.Sprintf("p%d", n)}
	c.follow(ctx)
}

// follow is a run with registrations, which are made before its records and among them. It records notes and answers, and completes.
func (c *story) follow(ctx context.Context) {
	f := &followed{story: c, run: c.run(""), hooksLeft: 2 + c.rng.IntN(hooksMost-1)}
	if !f.begin(ctx) {
		return
	}
	for i := range 6 + c.rng.IntN(9) {
		c.linger(ctx, stepMost)
		if !f.step(ctx, i) {
			return
		}
	}
	f.conclude(ctx)
}

// linger lets time pass, unless no case is to begin any more: then what is under way is told quickly.
func (c *story) linger(ctx context.Context, most time.Duration) {
	t := time.NewTimer(time.Duration(c.rng.Int64N(int64(most))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.enoughTold:
	case <-ctx.Done():
	}
}

// followed is such a run.
type followed struct {
	*story
	run       string
	head      int64 // as far as it is known
	hooksLeft int
	made      []*hook
}

func (f *followed) begin(ctx context.Context) bool {
	req := wire.StartRun{WorkflowID: f.id, RunID: f.run, Queue: queueIdle}
	var first *hook
	if f.rng.IntN(2) == 0 {
		first = f.newHook(1)
		put := f.put(first)
		put.RunID = ""
		req.Push = []wire.PutPush{put}
	}
	if !f.story.begin(ctx, req) {
		return false
	}
	f.head = 1
	if first != nil {
		f.hooks.change(first, func(h *hook) { h.made = time.Now() })
		f.made = append(f.made, first)
	}
	return true
}

// step is one of the things that happen to the run and to its registrations.
func (f *followed) step(ctx context.Context, i int) bool {
	if f.hooksLeft > 0 && f.rng.IntN(2) == 0 && !f.register(ctx) {
		return false
	}
	if len(f.made) > 0 && f.rng.IntN(5) == 0 && !f.meddle(ctx, f.made[f.rng.IntN(len(f.made))]) {
		return false
	}
	if f.rng.IntN(4) == 0 {
		value := fmt.Sprintf("%s/%d", f.id, i)
		return f.meeting(ctx, f.run, effectOf(i), f.someEvent(value), f.someKeys(value))()
	}
	return f.note(ctx, 1+f.rng.IntN(12))
}

// note records notes. An answer that was recorded meanwhile is no reason to give up.
func (f *followed) note(ctx context.Context, n int) bool {
	records := make([]wire.Record, n)
	for i := range records {
		records[i] = wire.Record{Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "soak"})}
	}
	return f.atHead(ctx, "runs.append", func(head int64) (int64, error) {
		got, err := f.access.any(f.rng).Append(ctx, wire.Append{RunID: f.run, ExpectedSeq: head, Records: records})
		return got.HeadSeq, err
	})
}

func (f *followed) conclude(ctx context.Context) {
	if f.atHead(ctx, "runs.conclude", func(head int64) (int64, error) {
		got, err := f.access.any(f.rng).Conclude(ctx, wire.Conclude{
			RunID: f.run, ExpectedSeq: head, Outcome: rendezvous.StatusCompleted, Result: client.JSON(map[string]string{"run": f.run}).Wire(),
		})
		return got.Seq, err
	}) {
		f.ledger.concluded(f.access.tenant, f.run)
	}
}

// atHead writes at the run's head, wherever that is by now.
func (f *followed) atHead(ctx context.Context, verb string, write func(head int64) (int64, error)) bool {
	for {
		head, err := write(f.head)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			f.head = head
			return true
		case !errors.Is(err, rendezvous.ErrConflict) || rendezvous.AsError(err).Details["what"] != "head":
			f.ledger.violation("%s of %s/%s: %v", verb, f.access.tenant, f.run, err)
			return false
		}
		got, err := f.access.any(f.rng).GetRun(ctx, wire.WorkflowRef{RunID: f.run})
		if err != nil {
			if ctx.Err() == nil {
				f.ledger.violation("runs.get of %s/%s: %v", f.access.tenant, f.run, err)
			}
			return false
		}
		f.head = got.HeadSeq
	}
}

// newHook makes one that begins at a record, before the plane is told of it.
func (f *followed) newHook(from int64) *hook {
	h := &hook{
		hookKey: hookKey{f.access.tenant, f.run, fmt.Sprintf("h%d", f.hooksLeft)}, manner: someManner(f.rng), from: from, keys: []string{newKey(), newKey()},
		rng: mathrand.New(mathrand.NewPCG(f.rng.Uint64(), f.rng.Uint64())), times: map[message]int{},
	}
	f.hooksLeft--
	switch f.rng.IntN(8) {
	case 0, 1: // the default: of runs and waits
	case 2:
		h.events = []string{string(rendezvous.RunCompleted)}
	case 3:
		h.a2a = true
	default:
		h.events = []string{rendezvous.AllEvents}
	}
	h.forever = h.manner.parks && f.rng.IntN(4) == 0
	h.terms = wire.PutPush{RunID: h.run, ID: h.id, Signing: signedBy(h.keys[0]), Events: h.events, TimeoutMS: patient.Milliseconds(), NextSeq: from}
	if h.a2a {
		h.terms.Projection = rendezvous.ProjectionA2A
	}
	if h.manner.put != nil {
		h.manner.put(&h.terms)
	}
	h.timeout = time.Duration(h.terms.TimeoutMS) * time.Millisecond
	h.most, h.rejects = cmp.Or(h.terms.MaxAttempts, rendezvous.DefaultMaxAttempts), cmp.Or(h.terms.OnRejectLimit, rendezvous.DefaultOnRejectLimit)
	var err error
	if h.verifier, err = receiver.New(h.keys); err != nil {
		panic(err) // keys of our own making
	}
	f.hooks.add(h)
	return h
}

// put is the registration under its first key.
func (f *followed) put(h *hook) wire.PutPush {
	r := h.terms
	r.URL = h.url(f.hooks.door)
	return r
}

func signedBy(key string) []wire.PushKey { return []wire.PushKey{{Key: wire.SecretOf(key)}} }

func newKey() string {
	key, err := standardwebhooks.Generate(standardwebhooks.HMAC, rand.Reader)
	if err != nil {
		panic(err) // there is no randomness
	}
	return key.Reveal()
}

// register registers one more, from the beginning or from the next record on.
func (f *followed) register(ctx context.Context) bool {
	from := f.head + 1
	if f.rng.IntN(2) == 0 {
		from = 1
	}
	h := f.newHook(from)
	if !f.did(ctx, "push.put", h, func(c *client.Client) error {
		_, err := c.PutPush(ctx, f.put(h))
		return err
	}) {
		return false
	}
	f.hooks.change(h, func(h *hook) { h.made = time.Now() })
	f.made = append(f.made, h)
	return true
}

// meddle replaces a registration's key, deletes it, or has it parked; those of which something else is to be seen it lets alone.
func (f *followed) meddle(ctx context.Context, h *hook) bool {
	switch r := f.rng.Float64(); {
	case h.manner.parks || h.parking || !h.deleted.IsZero() || !h.replaced.IsZero():
	case r < shareReplaced:
		return f.replace(ctx, h)
	case r < shareReplaced+shareDeleted:
		return f.remove(ctx, h)
	default:
		return f.park(ctx, h)
	}
	return true
}

func (f *followed) replace(ctx context.Context, h *hook) bool {
	put := f.put(h)
	put.Signing = signedBy(h.keys[1])
	f.hooks.change(h, func(h *hook) { h.unparked = append(h.unparked, time.Now()) })
	return f.did(ctx, "push.put", h, func(c *client.Client) error {
		_, err := c.PutPush(ctx, put)
		f.hooks.change(h, func(h *hook) { h.replaced = time.Now() })
		return err
	})
}

func (f *followed) remove(ctx context.Context, h *hook) bool {
	return f.did(ctx, "push.delete", h, func(c *client.Client) error {
		got, err := c.DeletePush(ctx, wire.PushRef{RunID: h.run, ID: h.id})
		f.hooks.change(h, func(h *hook) {
			if h.deleted = time.Now(); got.QuietAt.After(h.deleted) {
				h.deleted = got.QuietAt.Time
			}
		})
		return err
	})
}

func (f *followed) park(ctx context.Context, h *hook) bool {
	f.hooks.change(h, func(h *hook) { h.parking = true })
	return f.did(ctx, "push.park", h, func(c *client.Client) error {
		_, err := c.ParkPush(ctx, wire.ParkPush{PushRef: wire.PushRef{RunID: h.run, ID: h.id}, Operator: operator, Reason: "soak"})
		return err
	})
}

// did calls a verb about a registration, which nothing may refuse.
func (f *followed) did(ctx context.Context, verb string, h *hook, do func(c *client.Client) error) bool {
	err := do(f.access.any(f.rng))
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		f.ledger.violation("%s of %s: %v", verb, h.hookKey, err)
		return false
	}
	return true
}
