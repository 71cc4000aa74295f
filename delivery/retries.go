package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// pauses are how long after the try before each retry of a parked wait comes (events.md section 7). With the offer itself that is seven tries.
var pauses = [...]time.Duration{
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
}

// maxRetries bounds the waits in memory; what does not fit is the passes' at once.
const maxRetries = 50_000

type waitKey struct {
	tenant string
	wait   rendezvous.WaitID
}

// retries tries parked waits again for a while, a batch per turn, from memory.
type retries struct {
	clock   clock.Clock
	deliver func(ctx context.Context, waits []waitKey) (still []waitKey, err error)

	mu    sync.Mutex
	known map[waitKey]struct{}
	turns [len(pauses)][]due // by number of retries done; each ascending in due, as its pause is constant

	kick   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

type due struct {
	key waitKey
	at  time.Time
}

func newRetries(c clock.Clock, deliver func(context.Context, []waitKey) ([]waitKey, error)) *retries {
	return &retries{clock: c, deliver: deliver, known: map[waitKey]struct{}{}, kick: make(chan struct{}, 1)}
}

// start begins the loop; stop ends it.
func (r *retries) start() {
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.done = make(chan struct{})
	go r.loop()
}

func (r *retries) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// add takes a wait that was just found parked. One that is in already keeps its turn.
func (r *retries) add(k waitKey) {
	r.mu.Lock()
	_, in := r.known[k]
	if !in && len(r.known) < maxRetries {
		r.known[k] = struct{}{}
		r.push(0, k)
	}
	r.mu.Unlock()
	if !in {
		select {
		case r.kick <- struct{}{}:
		default:
		}
	}
}

// push appends k to its turn; the caller holds mu.
func (r *retries) push(turn int, k waitKey) {
	r.turns[turn] = append(r.turns[turn], due{k, r.clock.Now().Add(pauses[turn])})
}

func (r *retries) loop() {
	defer close(r.done)
	for {
		wait, any := r.next()
		if !any {
			select {
			case <-r.kick:
			case <-r.ctx.Done():
				return
			}
			continue
		}
		t := r.clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-r.kick:
		case <-r.ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
		for turn := range pauses {
			r.run(turn)
		}
	}
}

// next is how long until the first retry is due.
func (r *retries) next() (wait time.Duration, any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for _, turn := range r.turns {
		if len(turn) > 0 {
			if d := turn[0].at.Sub(now); !any || d < wait {
				wait, any = d, true
			}
		}
	}
	return wait, any
}

// run tries what is due in one turn. What is still parked gets the next turn; after the last, and when the store fails, it is forgotten: the passes
// own it.
func (r *retries) run(turn int) {
	for {
		batch := r.take(turn)
		if len(batch) == 0 {
			return
		}
		still, err := r.deliver(r.ctx, batch)
		r.settle(turn, batch, still)
		if err != nil {
			return
		}
	}
}

func (r *retries) take(turn int) []waitKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	var batch []waitKey
	for len(r.turns[turn]) > 0 && !r.turns[turn][0].at.After(now) && len(batch) < rendezvous.MaxBatchItems {
		batch = append(batch, r.turns[turn][0].key)
		r.turns[turn] = r.turns[turn][1:]
	}
	return batch
}

func (r *retries) settle(turn int, batch, still []waitKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range batch {
		delete(r.known, k)
	}
	if turn+1 == len(pauses) {
		return
	}
	for _, k := range still {
		r.known[k] = struct{}{}
		r.push(turn+1, k)
	}
}
