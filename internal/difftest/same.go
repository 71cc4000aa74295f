package difftest

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// chosen are fields that each store fills in as it likes: whether they are filled in is compared.
var chosen = []string{"Number", "Take", "Token", "NextCursor"}

// batch is the id of a record's batch: one that the store minted, since its caller named none, is any.
type batch string

// written is a record whose batch is compared as such.
func written(r rendezvous.Record) record {
	b := batch(r.Batch)
	if uuid.Validate(r.Batch) == nil {
		b = "minted"
	}
	r.Batch = ""
	return record{plain(r), b}
}

type (
	plain  rendezvous.Record
	record struct {
		Record plain
		Batch  batch
	}
)

// failure is an error as its caller sees it.
type failure struct {
	Code    rendezvous.Code
	Text    string
	Details map[string]any
}

// sameness compares answers of two sides.
type sameness struct {
	roles   *strings.Replacer // nil while nothing was minted
	minted  map[string]bool
	options cmp.Options
}

func (w *World) sameness() *sameness {
	s := &sameness{minted: map[string]bool{}}
	var pairs []string
	for _, on := range w.sides {
		for i, id := range on.minted {
			pairs = append(pairs, id, "$"+string(rune('a'+i)))
			s.minted[id] = true
		}
	}
	if len(pairs) > 0 {
		s.roles = strings.NewReplacer(pairs...)
	}
	s.options = cmp.Options{
		cmp.FilterPath(isChosen, cmp.Comparer(func(a, b any) bool { return reflect.ValueOf(a).IsZero() == reflect.ValueOf(b).IsZero() })),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location().String() == b.Location().String() }),
		cmp.Transformer("failure", s.failure),
		cmp.Transformer("placed", s.placed),
		cmp.Transformer("written", written),
	}
	if s.roles != nil {
		s.options = append(s.options, cmp.FilterPath(func(p cmp.Path) bool { return !isChosen(p) }, cmp.Options{
			cmp.Comparer(func(a, b string) bool { return s.named(a) == s.named(b) }),
			cmp.Comparer(func(a, b json.RawMessage) bool { return s.named(string(a)) == s.named(string(b)) }),
		}))
	}
	return s
}

func isChosen(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && slices.Contains(chosen, f.Name())
}

// named is text with minted ids by their roles.
func (s *sameness) named(text string) string {
	if s.roles == nil {
		return text
	}
	return s.roles.Replace(text)
}

// row is a workflow that is compared in all its parts.
type row store.Workflow

// placed takes the slice off a workflow whose id the store minted: it follows from the id.
func (s *sameness) placed(w store.Workflow) row {
	if s.minted[w.WorkflowID] {
		w.Shard = 0
	}
	return row(w)
}

// failure takes the tokens off what an error says.
func (s *sameness) failure(err error) failure {
	if err == nil {
		return failure{}
	}
	var e *rendezvous.Error
	if !errors.As(err, &e) {
		return failure{Text: s.named(err.Error())}
	}
	f := failure{Code: e.Code, Text: s.named(e.Message), Details: map[string]any{}}
	for k, v := range e.Details {
		if text, ok := v.(string); ok {
			v = s.named(text)
		}
		if f.Details[k] = v; k == "take" {
			f.Text, f.Details[k] = "take", v != int64(0)
		}
	}
	return f
}

// diff is how b differs from a.
func (s *sameness) diff(a, b answer) string {
	if cmp.Equal(a.value, b.value, s.options) && cmp.Equal(s.failure(a.err), s.failure(b.err)) {
		return ""
	}
	return cmp.Diff(a.value, b.value, s.options) + cmp.Diff(s.failure(a.err), s.failure(b.err))
}
