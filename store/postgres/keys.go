package postgres

import (
	"cmp"
	"slices"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// sortedKeys is keys in their order, each once.
func sortedKeys[K comparable](keys []K, compare func(a, b K) int) []K {
	if slices.IsSortedFunc(keys, compare) {
		return slices.Compact(slices.Clone(keys))
	}
	s := slices.Clone(keys)
	slices.SortFunc(s, compare)
	return slices.Compact(s)
}

func compareWorkflowKeys(a, b backend.WorkflowKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
}

func compareRunKeys(a, b backend.RunKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
}

func compareWaitKeys(a, b backend.WaitKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Effect, b.Effect))
}

func compareEventKeys(a, b backend.EventKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
}
