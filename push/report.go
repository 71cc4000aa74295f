package push

import (
	"log/slog"
	"sync"
)

// Report is what a worker did: since it was made, or in a pass.
type Report struct {
	Registrations int // claimed
	Records       int // passed, with or without a message
	Attempts      int
	Accepted      int
	Retries       int // charged failures that are tried again
	Deferred      int // put off uncharged
	Completed     int
	Parked        int
	Fenced        int // leases that were somebody else's, or revoked
	Faults        int // records that do not decode, projections that broke
	Unserved      int // due registrations of a namespace that this worker does not serve, when it looked last
	Saturated     int // claims behind which more was due
}

// Attention reports whether a human should look: more was due than was claimed, something was parked, or could not be read. What nobody here serves is
// another worker's (PU-50).
func (r Report) Attention() bool { return r.Saturated > 0 || r.Parked > 0 || r.Faults > 0 }

func (r Report) minus(o Report) Report {
	return Report{
		Registrations: r.Registrations - o.Registrations, Records: r.Records - o.Records, Attempts: r.Attempts - o.Attempts, Accepted: r.Accepted - o.Accepted,
		Retries: r.Retries - o.Retries, Deferred: r.Deferred - o.Deferred, Completed: r.Completed - o.Completed, Parked: r.Parked - o.Parked,
		Fenced: r.Fenced - o.Fenced, Faults: r.Faults - o.Faults, Saturated: r.Saturated - o.Saturated, Unserved: r.Unserved,
	}
}

// counts are a worker's, from its turns.
type counts struct {
	mu   sync.Mutex
	all  Report
	told Report
}

func (c *counts) add(o Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.all
	a.Registrations += o.Registrations
	a.Records += o.Records
	a.Attempts += o.Attempts
	a.Accepted += o.Accepted
	a.Retries += o.Retries
	a.Deferred += o.Deferred
	a.Completed += o.Completed
	a.Parked += o.Parked
	a.Fenced += o.Fenced
	a.Faults += o.Faults
	a.Saturated += o.Saturated
}

func (c *counts) unserved(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Unserved = n
}

func (c *counts) total() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// news is what was done since the last time.
func (c *counts) news() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.all.minus(c.told)
	c.told = c.all
	return r
}

// summarize logs what a pass came to, where anything happened.
func (w *Worker) summarize() {
	r := w.counts.news()
	quiet := r
	quiet.Unserved = 0
	if quiet == (Report{}) {
		return
	}
	level := slog.LevelDebug
	if r.Attention() {
		level = slog.LevelInfo
	}
	w.deps.Log.LogAttrs(w.life, level, "pushed", slog.Int("registrations", r.Registrations), slog.Int("records", r.Records), slog.Int("attempts", r.Attempts),
		slog.Int("accepted", r.Accepted), slog.Int("retries", r.Retries), slog.Int("deferred", r.Deferred), slog.Int("completed", r.Completed),
		slog.Int("parked", r.Parked), slog.Int("fenced", r.Fenced), slog.Int("faults", r.Faults), slog.Int("unserved", r.Unserved), slog.Int("saturated", r.Saturated))
}
