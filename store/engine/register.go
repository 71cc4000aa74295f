package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// registration is one wait on its way in. Its caller has judged shape, run, seal and lease, and f is locked.
type registration struct {
	f     *flow
	wait  rendezvous.Wait // checked
	epoch int64           // good, or 0
	claim bool            // false: Subscribe, which takes no event
	// seq is the WaitRegistered record that the caller, an append, wrote in this unit after judging legal order; 0: register judges and writes it.
	seq int64

	// Set by register.
	out  store.Registered // its Answer, if there is one, stands behind every record that was there before
	err  error            // this registration fails alone; nothing was written for it
	row  *backend.Wait    // the wait that stays
	look bool             // it took nothing: it wants the second look
}

// register judges what the history says of each registration, records those that are new, and gives each that claims its oldest event unless that is
// contested (O3). Reads and writes are set-based. Answers come in the order of regs.
func (u *unit) register(ctx context.Context, regs []*registration) error {
	return unavailable("not yet")
}

// secondLook offers the waits that took nothing, after their commit (O6), and completes their out. It answers what to notice. Its failure fails nothing:
// the lost-notice pass comes behind it.
func (e *Engine) secondLook(ctx context.Context, at time.Time, regs []*registration) store.Notices {
	return store.Notices{}
}
