package main

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// counters sums the workers' metrics over all their lives. A killed life takes what it counted since the last look with it.
type counters struct {
	mu   sync.Mutex
	past map[string]float64            // of lives that are over, by series
	now  map[string]map[string]float64 // of the present lives, by process
}

func newCounters() *counters {
	return &counters{past: map[string]float64{}, now: map[string]map[string]float64{}}
}

// watch looks at every worker each second until ctx ends.
func (p *plane) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the metrics of every worker that answers.
func (p *plane) look(ctx context.Context) {
	var all sync.WaitGroup
	for name, admin := range p.admins {
		all.Go(func() {
			var text bytes.Buffer
			if p.page(ctx, admin, "/metrics", &text) == nil {
				p.counters.take(name, counted(&text))
			}
		})
	}
	all.Wait()
}

var series = regexp.MustCompile(`^(rendezvous_[a-z_]+_total)(\{[^}]*\})? ([0-9.e+]+)$`)

// counted reads the plane's counters from a metrics page.
func counted(page *bytes.Buffer) map[string]float64 {
	found := map[string]float64{}
	lines := bufio.NewScanner(page)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := series.FindStringSubmatch(lines.Text()); m != nil {
			v, _ := strconv.ParseFloat(m[3], 64) // the pattern lets only numbers through
			found[m[1]+m[2]] = v
		}
	}
	return found
}

// take replaces what is known of a process; a counter that fell began anew with a new life.
func (c *counters) take(process string, latest map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now[process]
	for name, v := range before {
		if latest[name] < v {
			for n, old := range before {
				c.past[n] += old
			}
			break
		}
	}
	c.now[process] = latest
}

// by sums one metric by the values of one of its labels.
func (c *counters) by(metric, label string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.past)
	for _, life := range c.now {
		for name, v := range life {
			all[name] += v
		}
	}
	out := map[string]int{}
	for name, v := range all {
		if strings.HasPrefix(name, metric+"{") {
			_, rest, _ := strings.Cut(name, label+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			out[value] += int(v)
		}
	}
	return out
}
