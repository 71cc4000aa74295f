package node_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// Two embedded servers on the same streams spoil them. The second is refused by a word on who has the folder, and leaves it free for whoever comes after the
// first.
func TestTwoProcessesDoNotShareAFolderOfNATS(t *testing.T) {
	dir := t.TempDir()
	here := func(c *node.Config) { c.EmbeddedDir = dir }
	first, err := node.Start(t.Context(), nodetest.Config(t, here))
	if err != nil {
		t.Fatal(err)
	}
	second, err := node.Start(t.Context(), nodetest.Config(t, here))
	if err == nil {
		nodetest.Stop(t, second)
		t.Error("both start")
	} else if want := fmt.Sprintf("in use by another process (pid %d); give another --data", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("refused with %q, want %q", err, want)
	}
	nodetest.Stop(t, first)
	nodetest.Start(t, here)
}
