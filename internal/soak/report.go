package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// tell says now and then that it goes on.
func (s *soak) tell(ctx context.Context) {
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			request, stream := s.ledger.byDoor()
			s.ledger.mu.Lock()
			ago := func(door string) time.Duration { return time.Since(s.ledger.last[door]).Round(10 * time.Millisecond) }
			text := fmt.Sprintf("the last by request %s and by stream %s ago; %d broken promises", ago(requestDoor), ago(streamDoor), len(s.ledger.broken))
			s.ledger.mu.Unlock()
			fmt.Printf("soak: %d rounds, %d events accepted, %s\n", s.chaos.rounds.Load(), request+stream, text)
		}
	}
}

// print writes the summary.
func (s *soak) print(f figures, p punctuality) {
	request, stream := s.ledger.byDoor()
	line("rounds", "%d in %s", s.chaos.rounds.Load(), s.killing.Round(time.Second))
	line("kills", "%s", list(s.chaos.kills))
	line("events accepted", "%d (request door %d, stream door %d)", request+stream, request, stream)
	line("events in the store", "%d: answered %d, live %d, dead %d", f.events, f.answered, f.live, f.dead)
	line("runs, waits, records", "%d workflows, %d waits registered, %d records", f.workflows, f.waits, f.records)
	s.ledger.mu.Lock()
	line("sent again", "%d answered duplicate, %d published again, %d forgeries refused", s.ledger.duplicates, s.ledger.resent, s.ledger.conflicts)
	line("longest silence", "request door %s, stream door %s", s.ledger.silence[requestDoor].Round(10*time.Millisecond), s.ledger.silence[streamDoor].Round(10*time.Millisecond))
	abandoned := s.ledger.abandoned
	s.ledger.mu.Unlock()
	line("time to settle", "%s until every driven run completed (%d notices hurried), then %s", s.settled[0].Round(10*time.Millisecond), s.hurried, s.settled[1].Round(10*time.Millisecond))
	if s.hooks != nil { // nobody drives, nothing fires
		return
	}
	line("leases left to run out", "%d by the drivers that died", abandoned)
	line("armings", "%s", p.outcomes)
	line("fired late by", "%s", p.lateness)
	for _, o := range p.takeovers {
		line("due after "+o.what, "%s", o.text)
	}
	c := s.plane.counters
	line("taken in", "%s", list(c.by("rendezvous_ingest_events_total", "outcome")))
	line("offers", "%s", list(c.by("rendezvous_delivery_offers_total", "outcome")))
	line("retries from memory", "%s", list(c.by("rendezvous_delivery_retries_total", "outcome")))
	line("repaired by passes", "%s", list(c.by("rendezvous_sweep_rows_total", "pass")))
	line("in trouble", "%d waits quarantined, %d events with failed offers, %d reclaims in a row at most", f.quarantined, f.failed, f.reclaims)
}

// line is one of the summary.
func line(name, format string, args ...any) {
	fmt.Printf("  %-28s %s\n", name, fmt.Sprintf(format, args...))
}

// list is counts by name, in the order of names.
func list(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
