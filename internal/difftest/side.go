package difftest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Base is where every sequence begins.
var Base = time.Date(2026, 3, 4, 5, 6, 7, 891_011_000, time.UTC)

// Kind is a kind of store under test. It is opened once and lends an empty store to one sequence after the other.
type Kind struct {
	Name string
	// Serial says that writers exclude one another, so that what a verb decides is so when it commits.
	Serial bool
	// Empty answers the backend with nothing in it and its now at Base.
	Empty func() (backend.Backend, error)
	// Shift moves the store's now.
	Shift func(d time.Duration) error
	// Reopen closes the backend and opens what it kept; nil where nothing is kept over that.
	Reopen func() (backend.Backend, error)
}

// side is one store in one sequence.
type side struct {
	Kind
	store  store.Store // through failures
	plain  store.Store // around them, for looking
	below  backend.Backend
	faults *fault.Backend
	armed  []*fault.Armed

	// What this store chose for itself, in the order it was handed out: steps name it by its place, from 1.
	minted  []string
	takes   []int64
	tokens  []int64 // of send leases
	cursors []string
}

// world-wide context: nothing here is cancelled.
var ctx = context.Background()

func newSide(k Kind) (*side, error) {
	b, err := k.Empty()
	if err != nil {
		return nil, fmt.Errorf("empty %s: %w", k.Name, err)
	}
	s := &side{Kind: k}
	return s, s.mount(b)
}

// mount makes the two stores of a backend.
func (s *side) mount(b backend.Backend) (err error) {
	s.below, s.faults = b, fault.Wrap(b)
	if s.store, err = engine.New(s.faults, engine.Options{Destinations: destinations}); err != nil {
		return err
	}
	s.plain, err = engine.New(b, engine.Options{Destinations: destinations})
	return err
}

// Reopen closes every store that keeps something and opens it again.
type Reopen struct{}

func (Reopen) ask(s *side) (any, error) {
	b := s.below
	if s.Reopen != nil {
		var err error
		if b, err = s.Reopen(); err != nil {
			return nil, err
		}
	}
	return nil, s.mount(b)
}

// of is the handle of a tenant.
func (s *side) of(tenant string) (store.Tenant, error) { return s.store.Tenant(tenant) }

// id is a run's or workflow's id: "$n" is the n-th that the store minted.
func (s *side) id(name string) string {
	if n, ok := place(name); ok && n <= len(s.minted) {
		return s.minted[n-1]
	}
	return name
}

func place(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "$")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0
}

// minting takes failures back before a call that leaves an id to the store: where its answer is lost nobody knows the id.
func (s *side) minting(asked ...string) {
	if slices.Contains(asked, "") {
		s.faults.Disarm()
	}
}

// mint remembers an id that the caller left to the store.
func (s *side) mint(asked, got string) {
	if asked == "" && got != "" {
		s.minted = append(s.minted, got)
	}
}

// never is above every token that a store hands out in a test.
const never = 1 << 40

// take is the n-th token that the store handed out, 0 for none.
func (s *side) take(n int) int64 {
	switch {
	case n < 1:
		return int64(n)
	case n > len(s.takes):
		return never
	}
	return s.takes[n-1]
}

// cursor is the n-th cursor that the store handed out; -1 is one that no store made.
func (s *side) cursor(n int) string {
	switch {
	case n < 0:
		return "no cursor"
	case n == 0, n > len(s.cursors):
		return ""
	}
	return s.cursors[n-1]
}

// at is an instant of a step: what it is behind Base, and none for 0.
func at(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return Base.Add(d)
}

// operator is an operator of a step.
func operator(actor string) *rendezvous.Operator {
	if actor == "" {
		return nil
	}
	return &rendezvous.Operator{Actor: actor, Basis: rendezvous.BasisAsserted}
}

// keys are keys of a step, each "namespace=value".
func keys(texts []string) []rendezvous.Key {
	var all []rendezvous.Key
	for _, text := range texts {
		all = append(all, key(text))
	}
	return all
}

func key(text string) rendezvous.Key {
	namespace, value, _ := strings.Cut(text, "=")
	return rendezvous.Key{Namespace: namespace, Value: value}
}

// none and empty are two payloads.
const empty = "empty"

// bytesOf is a payload of a step.
func bytesOf(text string) []byte {
	switch text {
	case "":
		return nil
	case empty:
		return []byte{}
	}
	return []byte(text)
}
