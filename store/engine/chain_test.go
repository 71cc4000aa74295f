package engine

import (
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// chainOf is a sound chain of three runs: records 1..3, 4..6 and 7..9.
func chainOf() (*backend.Workflow, []*backend.Run) {
	w := &backend.Workflow{Tenant: "default", ID: "w", RunID: "c", Head: 9}
	return w, []*backend.Run{
		{Tenant: "default", ID: "a", WorkflowID: "w", FirstSeq: 1, LastSeq: 3, NextRun: "b"},
		{Tenant: "default", ID: "b", WorkflowID: "w", PreviousRun: "a", FirstSeq: 4, LastSeq: 6, NextRun: "c"},
		{Tenant: "default", ID: "c", WorkflowID: "w", PreviousRun: "b", FirstSeq: 7},
	}
}

// TestBrokenChainsAreCorruptAndNameTheRun proves HI-23: whatever link is broken, wherever a page begins.
func TestBrokenChainsAreCorruptAndNameTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(w *backend.Workflow, runs []*backend.Run) (parent *backend.Run, page []*backend.Run)
		run    string // "" is sound
	}{
		"sound": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) { return nil, r }, ""},
		"sound, from the middle": {
			func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) { return r[0], r[1:] }, "",
		},
		"no root": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) { return nil, r[1:] }, "b"},
		"second root": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[1].PreviousRun = ""
			return nil, r
		}, "b"},
		"second child": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[2].PreviousRun = "a"
			return nil, r
		}, "c"},
		"second child, from the middle": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[2].PreviousRun = "a"
			return r[0], r[2:]
		}, "c"},
		"previous run missing": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) { return nil, r[2:] }, "c"},
		"previous run of another workflow": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[0].WorkflowID = "other"
			return r[0], r[1:]
		}, "b"},
		"link back names another": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[0].NextRun = "x"
			return nil, r
		}, "b"},
		"gap between two runs": {func(_ *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			r[1].LastSeq = 5
			return nil, r
		}, "c"},
		"the end is not the current run": {func(w *backend.Workflow, r []*backend.Run) (*backend.Run, []*backend.Run) {
			w.RunID = "d"
			return nil, r
		}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := chainOf()
			parent, page := c.damage(w, runs)
			err := checkChain(w, parent, page, true)
			if c.run == "" {
				if err != nil {
					t.Fatalf("a sound chain: %v", err)
				}
				return
			}
			got, ok := err.(*rendezvous.Error)
			if !ok || got.Code != rendezvous.CodeCorrupt || got.Details["run"] != c.run {
				t.Fatalf("got %v, want corrupt naming run %q", err, c.run)
			}
		})
	}
}
