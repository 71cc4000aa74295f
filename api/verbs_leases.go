package api

import (
	"context"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// milliseconds is a duration of the wire; what does not fit stays out of every range.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) || ms < math.MinInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// ttlOf is a lease's time to live: the default where none is given. A given 0 is refused (RN-27).
func ttlOf(ms *int64) time.Duration {
	if ms == nil {
		return rendezvous.DefaultLease
	}
	return milliseconds(*ms)
}

func acquireLease(ctx context.Context, c call, req wire.AcquireLease) (wire.Lease, error) {
	if req.Epoch != 0 {
		return wire.Lease{}, rendezvous.InvalidField("epoch", "belongs to runs.renew only")
	}
	got, err := c.tenant.AcquireLease(ctx, req.RunID, req.Owner, ttlOf(req.TTLMS), req.AcquireID)
	return leaseOf(got), err
}

func renewLease(ctx context.Context, c call, req wire.AcquireLease) (wire.Lease, error) {
	if req.AcquireID != "" {
		return wire.Lease{}, rendezvous.InvalidField("acquire_id", "belongs to runs.acquire only")
	}
	if err := needEpoch(req.Epoch); err != nil {
		return wire.Lease{}, err
	}
	got, err := c.tenant.RenewLease(ctx, req.RunID, req.Owner, req.Epoch, ttlOf(req.TTLMS))
	return leaseOf(got), err
}

func leaseOf(l store.Lease) wire.Lease {
	return wire.Lease{
		WorkflowID: l.WorkflowID, Epoch: l.Epoch, HeadSeq: l.Head, ExpiresAt: wire.At(l.ExpiresAt), Requests: wire.RequestsOf(l.Requests), Mail: l.Mail.Mail,
	}
}

func needEpoch(epoch int64) error {
	if epoch < 1 {
		return rendezvous.InvalidField("epoch", "%d is no epoch; send the one runs.acquire answered", epoch)
	}
	return nil
}

func collect(ctx context.Context, c call, req wire.Collect) (wire.Collected, error) {
	if err := needEpoch(req.Epoch); err != nil {
		return wire.Collected{}, err
	}
	got, err := c.tenant.Collect(ctx, req.RunID, req.Epoch)
	if err != nil {
		return wire.Collected{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Collected{Records: wire.RecordsOf(got.Records), HeadSeq: got.Head, More: got.More}, nil
}

// releaseLease is Suspend with a seen_seq, ReleaseLease without.
func releaseLease(ctx context.Context, c call, req wire.ReleaseLease) (wire.Released, error) {
	if err := needEpoch(req.Epoch); err != nil {
		return wire.Released{}, err
	}
	var got store.Suspended
	var err error
	if req.SeenSeq != nil {
		got, err = c.tenant.Suspend(ctx, req.RunID, req.Epoch, *req.SeenSeq, req.KnowsCancel)
	} else {
		got, err = c.tenant.ReleaseLease(ctx, req.RunID, req.Epoch)
	}
	if err != nil {
		return wire.Released{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Released{
		Outcome: string(got.Outcome), Seq: got.Seq, Records: wire.RecordsOf(got.Records), HeadSeq: got.Head, Requests: wire.RequestsOf(got.Requests), More: got.More,
	}, nil
}
