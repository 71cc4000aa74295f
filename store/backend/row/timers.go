package row

import (
	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Timer reads a timer. Of a row that does not decode, what could be read stays: what counts its failures is needed to put it off.
func Timer(c *Columns) *backend.Timer {
	t := &backend.Timer{
		Tenant: c.Text(), WorkflowID: c.Text(), TimerID: c.Text(), RunID: c.Text(), Class: rendezvous.TimerClass(c.Text()), Effect: c.Text(), Shard: c.Tally(),
		FireAt: c.Instant(), ArmedSeq: c.Count(), DueAt: c.Instant(), ReadyAt: c.Instant(), Attempts: c.Tally(), LastError: c.Text(), Parks: c.Tally(),
		Token: c.Count(), Holder: c.Text(), HoldEpoch: c.Count(), HeldUntil: c.InstantOrNone(), Trace: rendezvous.Trace{Parent: c.Text(), State: c.Text()},
	}
	c.Judge(t.Unsound())
	t.Corrupt = c.Corrupt("timer", "tenant", t.Tenant, "workflow", t.WorkflowID, "timer", t.TimerID)
	return t
}

// ShardLease reads a shard's lease.
func ShardLease(c *Columns) (*backend.ShardLease, error) {
	l := &backend.ShardLease{
		Pool: c.Text(), Shard: c.Tally(), Owner: c.Text(), Epoch: c.Count(), ExpiresAt: c.InstantOrNone(), Serving: c.Boolean(), Address: c.Text(),
	}
	c.Judge(l.Unsound())
	return l, c.Corrupt("lease of a shard", "pool", l.Pool, "shard", l.Shard)
}

// Member reads a pool's member.
func Member(c *Columns) (*backend.Member, error) {
	m := &backend.Member{
		Pool: c.Text(), Incarnation: c.Text(), Address: c.Text(), StartedAt: c.Instant(), Draining: c.Boolean(), ExpiresAt: c.Instant(),
	}
	return m, c.Corrupt("member of a pool", "pool", m.Pool, "incarnation", m.Incarnation)
}
