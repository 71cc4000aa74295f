package api

import (
	"context"
	"runtime"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/wire"
)

func systemInfo(ctx context.Context, c call, _ struct{}) (wire.Info, error) {
	now, err := c.cfg.Store.Now(ctx)
	if err != nil {
		return wire.Info{}, err
	}
	info := wire.Info{Version: c.cfg.Version, Go: runtime.Version(), Store: c.cfg.Kind, Tenant: c.tenant.Name(), Now: wire.At(now)}
	if c.caller.Role < RoleOperator {
		return info, nil // depths are of all tenants
	}
	d, err := c.cfg.Store.Depths(ctx)
	info.Depths = &wire.Depths{
		LiveEvents: d.LiveEvents, OpenWaits: d.OpenWaits, ParkedWaits: d.ParkedWaits, QuarantinedWaits: d.QuarantinedWaits, Woken: d.Woken,
		Timers: d.Timers, DueTimers: d.DueTimers, DuePushes: d.DuePushes, FailingPushes: d.FailingPushes, ParkedPushes: d.ParkedPushes, DeadLetters: d.DeadLetters, Dead: d.Dead,
		OldestLiveEvent: wire.At(d.OldestLiveEvent), OldestParked: wire.At(d.OldestParked), OldestWoken: wire.At(d.OldestWoken),
		OldestDueTimer: wire.At(d.OldestDueTimer), OldestDuePush: wire.At(d.OldestDuePush), Capped: d.Capped,
	}
	return info, err
}

// systemCheck is failing when the store cannot commit, degraded when anything else says a reason: the process's own checks, and what of all live rows asks for
// attention (sweep.md section 8). A reason that two say is told once.
func systemCheck(ctx context.Context, c call, _ struct{}) (wire.Check, error) {
	out := wire.Check{Verdict: wire.CheckOK, Reasons: []string{}}
	tell := func(verdict, reason string) {
		out.Verdict = verdict
		if !slices.Contains(out.Reasons, reason) {
			out.Reasons = append(out.Reasons, reason)
		}
	}
	for _, check := range c.cfg.Checks {
		for _, reason := range check(ctx) {
			tell(wire.CheckDegraded, reason)
		}
	}
	for _, reason := range c.attention(ctx) {
		tell(wire.CheckDegraded, reason.String())
	}
	if err := c.cfg.Store.Ping(ctx); err != nil {
		tell(wire.CheckFailing, "the store cannot commit: "+rendezvous.AsError(err).Message)
	}
	return out, nil
}

// attention is what the rows of the store ask for.
func (c call) attention(ctx context.Context) []attention.Reason {
	d, err := c.cfg.Store.Depths(ctx)
	if err != nil {
		return []attention.Reason{attention.GaugesMissing}
	}
	now, err := c.cfg.Store.Now(ctx)
	if err != nil {
		return []attention.Reason{attention.GaugesMissing}
	}
	return attention.Of(d, now)
}
