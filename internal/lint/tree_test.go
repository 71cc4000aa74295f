package lint

import "testing"

// The rules themselves: everything else here only proves that the checker sees what it should.
func TestTheTreeKeepsItsRules(t *testing.T) {
	tree, err := Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 20 || tree.Module != "github.com/rendezvous-events/rendezvous" {
		t.Fatalf("%d files of module %q: this is not the tree", len(tree.Files), tree.Module)
	}
	for _, f := range Check(tree) {
		t.Error(f)
	}
}

func TestTheListOfSleepersIsShortAndExplained(t *testing.T) {
	if len(sleepers) > 5 {
		t.Errorf("%d tests sleep", len(sleepers))
	}
	for name, reason := range sleepers {
		if len(reason) < 20 {
			t.Errorf("%s may sleep without a reason", name)
		}
	}
}
