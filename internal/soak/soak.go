package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/messaging"
)

const (
	finishLimit = 2 * time.Minute  // for the cases under way, once nothing is killed any more
	probeLimit  = 30 * time.Second // for a fresh event to get through the stream door, and for every stream and durable to be there
	sayEvery    = 10 * time.Second

	hurryAfter   = 30 * time.Second
	silenceLimit = time.Minute // a door that is silent for so long while the load goes on did not come back by itself
)

// soak is one run: load and chaos, then rest, then judgement.
type soak struct {
	options
	plane  *plane
	ledger *ledger
	chaos  *chaos
	hooks  *hooks // nil but in the push shape

	access    []*access
	executors []*client.Executor
	drivers   []*drivers
	settled   [2]time.Duration // runs completed; claims and leases gone
	hurried   int              // notices made due, see complete
	killing   time.Duration

	unwatch   func() // ends the watch over registrations
	delivered time.Duration
}

func newSoak(o options, p *plane) *soak {
	s := &soak{options: o, plane: p, ledger: newLedger()}
	s.ledger.failOver = o.failOver
	if o.push {
		s.hooks = newHooks(s.ledger)
	}
	s.chaos = newChaos(p, s.ledger, o.seed, s.say)
	return s
}

func (s *soak) say(format string, args ...any) {
	if s.verbose {
		fmt.Printf("  %s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

// run answers an error that says all that was found.
func (s *soak) run(ctx context.Context) error {
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer unwatch()
	watch.Go(func() { s.plane.watch(watching) })
	watch.Go(func() { s.tell(watching) })
	if err := s.employ(); err != nil {
		return errors.Join(err, s.dismiss())
	}
	if s.hooks != nil {
		leave, err := s.follow(watching)
		if err != nil {
			return errors.Join(err, s.dismiss())
		}
		defer func() { s.keep("stopping the receiver", leave()) }()
	}
	if err := s.underLoad(ctx); err != nil {
		return errors.Join(err, s.dismiss())
	}
	v := newVerifier(s.plane.judged, s.plane.embedded, s.ledger, s.say)
	defer v.close(ctx)
	if err := s.rest(ctx, v); err != nil {
		return err
	}
	unwatch()
	watch.Wait()
	s.plane.look(ctx)
	s.keep("stopping the workers", s.plane.stopWorkers())
	return s.judge(ctx, v)
}

// keep notes an error as a finding.
func (s *soak) keep(what string, err error) {
	if err != nil {
		s.ledger.violation("%s: %v", what, err)
	}
}

// employ starts those who drive runs.
func (s *soak) employ() (err error) {
	log := quiet(s.verbose, os.Stderr)
	if s.access, err = s.plane.clients(log); err != nil {
		return err
	}
	if s.hooks != nil { // its runs nobody drives
		return nil
	}
	if s.executors, err = executors(s.access, log); err != nil {
		return err
	}
	for _, a := range s.access {
		d, err := startDrivers(a, s.ledger, log)
		if err != nil {
			return err
		}
		s.drivers = append(s.drivers, d)
	}
	return nil
}

// dismiss stops them.
func (s *soak) dismiss() error {
	err := finish(s.executors)
	for _, d := range s.drivers {
		err = errors.Join(err, d.stop())
	}
	for _, a := range s.access {
		a.close()
	}
	return err
}

// underLoad kills while the load goes on, then lets every case under way be told to its end.
func (s *soak) underLoad(ctx context.Context) error {
	l := newLoad(s.access, s.ledger, s.hooks, s.options)
	begin, enough := context.WithCancel(ctx)
	defer enough()
	cut, cutOff := context.WithCancel(ctx)
	defer cutOff()
	told := make(chan struct{})
	go func() { defer close(told); l.run(begin, cut) }()
	defer func() { <-told }()
	defer cutOff()

	if s.hooks != nil {
		s.hooks.beCalm(ctx)
	}
	started := time.Now()
	err := s.kill(ctx, l)
	s.killing = time.Since(started)
	if err == nil {
		err = s.plane.up(ctx)
	}
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	fmt.Printf("soak: %d rounds in %s; nothing is killed any more\n", s.chaos.rounds.Load(), s.killing.Round(time.Second))
	enough()
	select {
	case <-told:
	case <-time.After(finishLimit):
		s.ledger.violation("cases were still under way %s after the last round", finishLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.probe(ctx, l)
	return nil
}

// kill kills until there were enough rounds and timers, or the time is over.
func (s *soak) kill(ctx context.Context, l *load) error {
	killing, over := context.WithCancel(ctx)
	defer over()
	if s.duration > 0 {
		killing, over = context.WithTimeout(ctx, s.duration)
		defer over()
	}
	lanes, killing := errgroup.WithContext(killing)
	lanes.Go(func() error { defer over(); return s.chaos.run(killing, s.rounds, l.enough) })
	lanes.Go(func() error { return s.chaos.unseat(killing, s.seed) })
	return lanes.Wait()
}

// probe sends a fresh event through the stream door of each tenant, and looks whether every stream and durable is there: the workers made them again by
// themselves.
func (s *soak) probe(ctx context.Context, l *load) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	rng := rand.New(rand.NewPCG(s.seed, 2))
	for _, a := range s.access {
		c := &story{load: l, access: a, rng: rng, id: "probe"}
		if !c.start(ctx, c.id, c.run(""), queueIdle, nil) || !c.register(ctx, c.run(""), "probe", key(c.id)) ||
			!l.publish(ctx, a, rng, event(c.id, key(c.id)), "") {
			s.ledger.violation("%s: a fresh event did not get through the stream door within %s", a.tenant, probeLimit)
		}
	}
	n := messaging.NamesOf(messaging.DefaultPrefix)
	durables := map[string]string{n.InboxDurable(): n.Inbox()}
	for i := range messaging.Partitions {
		durables[n.MatchDurable(i)] = n.Match()
		if s.hooks != nil {
			durables[n.PushDurable(i)] = n.Push()
		}
	}
	for _, t := range tenants {
		if s.hooks == nil { // else nobody drives
			durables[n.ResumeDurable(t, queueDriven)] = n.Resume()
		}
	}
	for durable, stream := range durables {
		for {
			_, err := s.plane.js.Consumer(ctx, stream, durable)
			if err == nil {
				break
			}
			if !pause(ctx, 100*time.Millisecond) {
				s.ledger.violation("consumer %s of %s is not there: %v", durable, stream, err)
				break
			}
		}
	}
}

// rest lets the plane repair what is left: first with drivers, until every driven run has completed, then without.
func (s *soak) rest(ctx context.Context, v *verifier) (err error) {
	if s.hooks != nil {
		if err := s.deliver(ctx); err != nil {
			return errors.Join(err, s.dismiss())
		}
	}
	err = s.complete(ctx, v)
	s.keep("stopping the drivers", s.dismiss())
	if err != nil {
		return err
	}
	s.settled[1], err = v.settle(ctx, s.settle, settling[1:]...)
	return err
}

// complete waits until every driven run has completed. What the notices' growing intervals put off is hurried once the first intervals are over.
func (s *soak) complete(ctx context.Context, v *verifier) error {
	for start := time.Now(); ; {
		took, err := v.settle(ctx, min(hurryAfter, s.settle), settling[0])
		if err != nil {
			return err
		}
		if s.settled[0] = time.Since(start); took < hurryAfter || s.settled[0] > s.settle || ctx.Err() != nil {
			return nil
		}
		hurry := v.hurry
		if s.plane.embedded {
			hurry = s.plane.hurryEmbedded
		}
		n, err := hurry(ctx)
		if s.hurried += n; err != nil {
			return err
		}
	}
}

// judge holds the store against the ledger and prints the summary.
func (s *soak) judge(ctx context.Context, v *verifier) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := v.look(ctx); err != nil {
		return err
	}
	ran, found, err := v.all(ctx)
	if err != nil {
		return err
	}
	f, err := v.figures(ctx)
	if err != nil {
		return err
	}
	late, err := v.punctuality(ctx)
	if err != nil {
		return err
	}
	s.print(f, late)
	pushed, err := s.judgePushes(ctx, v)
	if err != nil {
		return err
	}
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	errs := slices.Concat(s.plane.alarms(), s.plane.onTime(), s.plane.died, pushed)
	for _, b := range s.ledger.broken[:min(len(s.ledger.broken), 5*shown)] {
		errs = append(errs, errors.New(b))
	}
	for _, x := range found {
		errs = append(errs, errors.New(x.String()))
	}
	for door, d := range s.ledger.silence {
		if d > silenceLimit {
			errs = append(errs, fmt.Errorf("the %s door took nothing in for %s", door, d))
		}
	}
	request, stream := s.ledger.byDoor()
	if request == 0 || stream == 0 || f.answered == 0 {
		errs = append(errs, fmt.Errorf("the load did nothing: %d and %d events accepted, %d answered", request, stream, f.answered))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%d findings\n%w", len(errs), errors.Join(errs...))
	}
	fmt.Printf("soak: %d checks, nothing found\n", ran)
	return nil
}
