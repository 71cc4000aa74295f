package node

import (
	"os"
	"runtime/debug"

	"github.com/rendezvous-events/rendezvous/store/open"
)

// A worker's live heap is small and its garbage plenty. So it collects seldom, until it nears its soft limit, which keeps it under 150 MiB resident; what it
// keeps in flight is bounded elsewhere. A plane on the embedded store is five workers, a broker and a database in one process.
const (
	collectAt     = 300
	softLimit     = 120 << 20
	embeddedLimit = 320 << 20
)

// TuneMemory sets the collector for a process whose state is in the store. GOGC and GOMEMLIMIT in the environment win; a store in memory is left alone,
// as its heap is its state.
func TuneMemory(storeURL string) {
	if open.Kind(storeURL) == "memory" || os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(collectAt)
	if open.Kind(storeURL) == "sqlite" {
		debug.SetMemoryLimit(embeddedLimit)
	} else {
		debug.SetMemoryLimit(softLimit)
	}
}
