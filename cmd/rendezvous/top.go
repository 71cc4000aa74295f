package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/wire"
)

// topCmd looks at a plane again and again: what it holds, how fast it works, and what a human should look at.
type topCmd struct {
	remote
	Metrics  []string      `help:"Admin address of a process, for rates and passes; repeatable, once for each process. Unless said, port 7481 beside a server on port 7480 of this machine; another one wants it named." placeholder:"URL"`
	Interval time.Duration `help:"Time from one look to the next." default:"2s" placeholder:"DURATION"`
	Count    int           `help:"End after so many looks; 0: never." placeholder:"N"`
}

// topLook is what one look saw. What was not seen is left out: an old number would look like a good one.
type topLook struct {
	At      wire.Time          `json:"at"`
	Error   string             `json:"error,omitempty"` // why the plane does not answer, or not all
	Version string             `json:"version,omitempty"`
	Store   string             `json:"store,omitempty"`
	Verdict string             `json:"verdict,omitempty"`
	Reasons []string           `json:"reasons"`
	Depths  *wire.Depths       `json:"depths,omitempty"`
	Oldest  map[string]float64 `json:"oldest_s,omitempty"` // ages by kind
	Counts  map[string]float64 `json:"counts,omitempty"`   // since the processes started
	Rates   map[string]float64 `json:"rates,omitempty"`    // a second, since the look before
	Passes  []topPass          `json:"passes,omitempty"`
	Unread  []string           `json:"unread,omitempty"` // metrics that were not read, and why
}

// Bounds of a look.
const (
	shortestInterval = 100 * time.Millisecond
	lookPatience     = 5 * time.Second
)

func (c *topCmd) Run(ctx context.Context) error {
	if c.Interval < shortestInterval {
		return rendezvous.InvalidField("interval", "is less than %s", shortestInterval)
	}
	at, err := c.resolved()
	if err != nil {
		return err
	}
	m, err := newMeters(c.Metrics, at.server)
	if err != nil {
		return err
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	defer rdv.Close()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	show := c.line
	if c.Output == "table" && terminal(os.Stdout) {
		s, err := openScreen(quit)
		if err != nil {
			return err
		}
		defer s.close()
		show = func(l topLook) error { return s.draw(l, hostOf(at.server)) }
	}
	return c.watch(ctx, func(ctx context.Context) (topLook, error) { return look(ctx, rdv, m) }, show)
}

// watch looks and shows until there are enough looks. A plane that does not answer is asked again; one that refuses is not.
func (c *topCmd) watch(ctx context.Context, look func(ctx context.Context) (topLook, error), show func(topLook) error) error {
	tick := clock.System.NewTicker(c.Interval)
	defer tick.Stop()
	for n := 1; ; n++ {
		l, lost := look(ctx)
		if ctx.Err() != nil {
			return nil // somebody ended it
		}
		if lost != nil && !client.Retryable(lost) {
			return lost
		}
		if err := show(l); err != nil {
			return err
		}
		if n == c.Count {
			return lost
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// look asks the plane and reads the metrics. The error is the plane's, and stands in the look too.
func look(ctx context.Context, rdv *client.Client, m *meters) (topLook, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.System, lookPatience)
	defer cancel()
	l := topLook{At: wire.At(clock.System.Now()), Reasons: []string{}}
	m.read(ctx, &l)
	check, err := rdv.Check(ctx)
	if err == nil { // it says why, also where the store is away and cannot be counted
		l.Verdict, l.Reasons = check.Verdict, check.Reasons
		var info wire.Info
		if info, err = rdv.Info(ctx); err == nil {
			l.Version, l.Store, l.Depths, l.Oldest = info.Version, info.Store, info.Depths, agesOf(info)
		}
	}
	m.attend(&l)
	if err != nil {
		l.Error = rendezvous.AsError(err).Error()
	}
	return l, err
}

// agesOf are the seconds since the oldest rows came, by the store's clock.
func agesOf(i wire.Info) map[string]float64 {
	if i.Depths == nil {
		return nil
	}
	ages := map[string]float64{}
	for kind, since := range map[string]wire.Time{
		"live_events": i.Depths.OldestLiveEvent, "parked_waits": i.Depths.OldestParked, "woken": i.Depths.OldestWoken, "due_timers": i.Depths.OldestDueTimer,
		"due_pushes": i.Depths.OldestDuePush,
	} {
		if !since.IsZero() {
			ages[kind] = max(i.Now.Sub(since.Time).Seconds(), 0)
		}
	}
	return ages
}

// line prints a look on one line.
func (c *topCmd) line(l topLook) error {
	if c.Output != "table" {
		return printJSON(l, "")
	}
	_, err := fmt.Println(l.text())
	return err
}
