package move

import (
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// mark is how far a copy got, as it stands in the target.
type mark struct {
	From    string                  `json:"from"`
	Layout  string                  `json:"layout"`
	Kinds   map[backend.Kind]*stage `json:"kinds"`
	Numbers backend.Numbers         `json:"numbers"` // the highest ones that rows have
}

// stage is how far the copy of one kind got.
type stage struct {
	Tally
	After backend.Position `json:"after"`
	Done  bool             `json:"done,omitempty"`
}

func newMark(from string) *mark {
	m := &mark{From: from, Layout: layout(), Kinds: map[backend.Kind]*stage{}}
	for _, kind := range backend.Kinds {
		m.Kinds[kind] = &stage{}
	}
	return m
}

// readMark goes on with a copy from that source.
func readMark(text, from string) (*mark, error) {
	m := newMark("")
	m.Layout = ""
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, backend.HalfCopied("?")
	}
	switch {
	case m.From != from:
		return nil, backend.HalfCopied(text)
	case m.Layout != layout():
		return nil, rendezvous.InvalidField("to", "the copy was begun by another build, which goes on with it; or begin again with an empty store")
	}
	return m, nil
}

func (m *mark) text() string {
	raw, err := json.Marshal(m)
	if err != nil {
		panic("store/move: encode a mark: " + err.Error()) // texts and numbers always encode
	}
	return string(raw)
}

// take notes that a page was copied.
func (m *mark) take(kind backend.Kind, p *backend.Page) {
	s := m.Kinds[kind]
	if p.Rows == 0 {
		s.Done = true
		return
	}
	s.After = p.Last
	s.add(p)
	for _, e := range p.NewEvents {
		m.Numbers = m.Numbers.Max(backend.Numbers{Event: e.Number, Take: e.Take})
	}
	for _, w := range p.NewWaits {
		m.Numbers = m.Numbers.Max(backend.Numbers{Wait: w.Number, Take: w.Take})
		if w.Held != nil {
			m.Numbers = m.Numbers.Max(backend.Numbers{Wait: w.Held.Claim}) // from the waits' sequence
		}
	}
	for _, x := range p.Timers {
		m.Numbers = m.Numbers.Max(backend.Numbers{Take: x.Token})
	}
}
