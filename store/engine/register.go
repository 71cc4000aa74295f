package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// RegisterWait implements [store.Waits].
func (t *tenant) RegisterWait(ctx context.Context, r store.Registration, at time.Time) (store.Registered, error) {
	regs, err := t.registerItems(ctx, "register_wait", []store.RegisterItem{{Tenant: t.name, Registration: r}}, true, at)
	if err != nil {
		return store.Registered{}, err
	}
	return regs[0].out, regs[0].err
}

// Subscribe implements [store.Waits].
func (t *tenant) Subscribe(ctx context.Context, r store.Registration, at time.Time) (store.Subscribed, error) {
	regs, err := t.registerItems(ctx, "subscribe", []store.RegisterItem{{Tenant: t.name, Registration: r}}, false, at)
	if err != nil {
		return store.Subscribed{}, err
	}
	if regs[0].err != nil {
		return store.Subscribed{}, regs[0].err
	}
	return store.Subscribed{Number: regs[0].out.Number, Seq: regs[0].out.Seq, Closed: regs[0].closing, Notices: regs[0].out.Notices}, nil
}

// RegisterBatch implements [store.Registrar].
func (e *Engine) RegisterBatch(ctx context.Context, items []store.RegisterItem, at time.Time) ([]store.Registered, error) {
	if err := checkItems(len(items), at); err != nil {
		return nil, err
	}
	regs, err := e.registerItems(ctx, "register_batch", items, true, at)
	if err != nil {
		return nil, err
	}
	out := make([]store.Registered, len(regs))
	for i, r := range regs {
		out[i] = r.out
		out[i].Err = r.err
	}
	return out, nil
}

// registerItems registers the items and takes one second look for all that took nothing (O6, EV-87). Their notices go to the first that was registered.
func (e *Engine) registerItems(ctx context.Context, verb string, items []store.RegisterItem, claim bool, at time.Time) ([]*registration, error) {
	var notices store.Notices
	room := rendezvous.MaxCollectBytes // of all parts together
	regs, err := inParts(items, func(part []store.RegisterItem) ([]*registration, error) {
		var regs []*registration
		sent, err := e.update(ctx, verb, at, func(ctx context.Context, u *unit) (err error) {
			regs, err = u.registerPart(ctx, part, claim, room)
			return err
		})
		notices.Append(sent)
		if err == nil {
			room -= answerBytes(regs)
		}
		return regs, err
	}, func(err error) *registration { return &registration{err: err} })
	if err != nil {
		return nil, err
	}
	notices.Append(e.secondLook(ctx, at, regs, room))
	for _, r := range regs {
		if r.first != nil {
			r.out, r.closing, r.err = r.first.out, r.first.closing, r.first.err
			r.out.Also = nil
		}
	}
	for _, r := range regs {
		if r.err == nil {
			r.out.Notices = notices
			break
		}
	}
	return regs, nil
}

// registerPart is one try of a batch of registrations: checks 1 to 5 of each (runs.md section 2), then register.
func (u *unit) registerPart(ctx context.Context, items []store.RegisterItem, claim bool, room int) ([]*registration, error) {
	regs := make([]*registration, len(items))
	var keys []backend.RunKey
	for i, item := range items {
		r := &registration{epoch: item.Epoch, claim: claim}
		r.wait, r.err = item.Wait.Check()
		if err := rendezvous.CheckTenant(item.Tenant); err != nil {
			r.err = err
		}
		if item.Epoch < 0 {
			r.err = checkEpoch(item.Epoch)
		}
		if r.err == nil {
			keys = append(keys, backend.RunKey{Tenant: item.Tenant, ID: r.wait.RunID})
		}
		regs[i] = r
	}
	runs, err := u.lockRuns(ctx, distinct(keys))
	if err != nil {
		return nil, err
	}
	good := make([]*registration, 0, len(regs))
	for i, r := range regs {
		if r.err == nil {
			r.f, r.err = u.openRun(runs, backend.RunKey{Tenant: items[i].Tenant, ID: r.wait.RunID})
		}
		if r.err == nil {
			r.err = u.checkLease(r.f, r.epoch)
		}
		if r.err == nil {
			good = append(good, r)
		}
	}
	return regs, u.register(ctx, good, room)
}

// answerBytes is the payload of what the registrations answer.
func answerBytes(regs []*registration) int {
	size := 0
	for _, r := range regs {
		if r.out.Answer != nil {
			size += len(r.out.Answer.Payload)
		}
	}
	return size
}

// openRun is the locked workflow of a run that is its current, unsealed one: else not_found or sealed.
func (u *unit) openRun(runs map[backend.RunKey]*backend.Run, key backend.RunKey) (*flow, error) {
	run := runs[key]
	if run == nil {
		return nil, runNotFound(key.ID)
	}
	f := u.flowOf(run)
	switch {
	case f == nil:
		return nil, rendezvous.Errorf(rendezvous.CodeCorrupt, "the workflow of run %q is not there", key.ID).With("run", key.ID)
	case f.Corrupt != nil:
		return nil, f.Corrupt
	case !current(f, run):
		return nil, sealed(f.Workflow, run)
	}
	return f, nil
}
