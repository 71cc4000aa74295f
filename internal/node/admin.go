package node

import (
	"context"
	"net/http"
	"net/http/pprof"
	"regexp"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+([-+].*)?$`)

// startAdmin serves health and metrics: first and until the end, so that a process that migrates or drains is seen to live.
func (n *Node) startAdmin(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", n.readyz)
	mux.Handle("GET /metrics", n.telemetry.Metrics)
	if n.cfg.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	var err error
	n.Admin, err = n.serve(ctx, "admin", n.cfg.Admin, mux)
	return err
}

// readyz says whether the process does its work now, and if not why.
func (n *Node) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := clock.WithTimeout(r.Context(), clock.System, 2*time.Second)
	defer cancel()
	if !n.up.Load() {
		http.Error(w, "starting or stopping", http.StatusServiceUnavailable)
		return
	}
	for _, check := range n.ready {
		if err := check(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = w.Write([]byte("ok\n"))
}
