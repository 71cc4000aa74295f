package backend

import (
	"cmp"
	"slices"
)

// Compare orders by tenant and id, as bytes.
func (k WorkflowKey) Compare(o WorkflowKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.ID, o.ID))
}

// Compare orders by tenant and id, as bytes.
func (k RunKey) Compare(o RunKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.ID, o.ID))
}

// Compare orders by tenant, run and effect, as bytes.
func (k WaitKey) Compare(o WaitKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.RunID, o.RunID), cmp.Compare(k.Effect, o.Effect))
}

// Compare orders by tenant, source and id, as bytes.
func (k EventKey) Compare(o EventKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.Source, o.Source), cmp.Compare(k.ID, o.ID))
}

// Compare orders by tenant, run and batch, as bytes.
func (k BatchKey) Compare(o BatchKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.RunID, o.RunID), cmp.Compare(k.ID, o.ID))
}

// Compare orders by tenant, workflow and timer, as bytes.
func (k TimerKey) Compare(o TimerKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.WorkflowID, o.WorkflowID), cmp.Compare(k.TimerID, o.TimerID))
}

// Compare orders by tenant, run and timer, as bytes.
func (k RunTimerKey) Compare(o RunTimerKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.RunID, o.RunID), cmp.Compare(k.TimerID, o.TimerID))
}

// Compare orders by pool, as bytes, and shard.
func (k ShardKey) Compare(o ShardKey) int {
	return cmp.Or(cmp.Compare(k.Pool, o.Pool), cmp.Compare(k.Shard, o.Shard))
}

// Compare orders by pool and incarnation, as bytes.
func (k MemberKey) Compare(o MemberKey) int {
	return cmp.Or(cmp.Compare(k.Pool, o.Pool), cmp.Compare(k.Incarnation, o.Incarnation))
}

// Compare orders by tenant, run and id, as bytes.
func (k PushKey) Compare(o PushKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.RunID, o.RunID), cmp.Compare(k.ID, o.ID))
}

// Compare orders by registration, incarnation and number.
func (k PushLogKey) Compare(o PushLogKey) int {
	return cmp.Or(k.PushKey.Compare(o.PushKey), cmp.Compare(k.Incarnation, o.Incarnation), cmp.Compare(k.No, o.No))
}

// SortedKeys is keys in their order, each once.
func SortedKeys[K interface {
	comparable
	Compare(K) int
}](keys []K) []K {
	s := slices.Clone(keys)
	slices.SortFunc(s, K.Compare)
	return slices.Compact(s)
}
