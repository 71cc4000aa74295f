package engine

import (
	"time"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// unmetOverlap is how far behind the last look the next one begins: a row bears the instant at which its transaction began, and can be seen only once that
// is committed. What takes longer is found by the slices.
const unmetOverlap = 10 * time.Second

// unmetPosition is a look for unmet events between two pages, as a cursor carries it.
type unmetPosition struct {
	Events markPosition `json:"e"`
	Waits  markPosition `json:"w"`
	Tenant string       `json:"t"`
	Space  []byte       `json:"s"` // texts of the slice's place, any bytes they may be
	Value  []byte       `json:"v"`
	Type   []byte       `json:"k"`
	Number int64        `json:"n"`
}

type markPosition struct {
	At     time.Time `json:"a"`
	Number int64     `json:"n"`
}

func (p *unmetPosition) sound() bool {
	for _, m := range [...]markPosition{p.Events, p.Waits} {
		if !soundAt(m.At) || m.At.IsZero() {
			return false
		}
	}
	for _, text := range [...][]byte{p.Space, p.Value, p.Type} {
		if len(text) > rendezvous.MaxID || !utf8.Valid(text) || rendezvous.CheckReason("cursor", string(text)) != nil {
			return false
		}
	}
	return p.Tenant == "" || rendezvous.CheckTenant(p.Tenant) == nil
}

// unmetLook is where a page begins. Without a cursor there are no news: everything is looked at, slice by slice.
func unmetLook(p *unmetPosition, before time.Time) backend.UnmetLook {
	l := backend.UnmetLook{Before: before, Events: backend.Mark{At: before}, Waits: backend.Mark{At: before}}
	if p == nil {
		return l
	}
	l.Events, l.Waits = backend.Mark(p.Events), backend.Mark(p.Waits)
	l.Slice = backend.KeyPlace{Tenant: p.Tenant, Namespace: string(p.Space), Value: string(p.Value), Type: string(p.Type), Number: p.Number}
	return l
}

// unmetCursor is where the page behind this one begins.
func unmetCursor(verb string, l backend.UnmetLook, page backend.UnmetPage) string {
	behind := func(m backend.Mark) markPosition {
		if m == (backend.Mark{}) {
			m.At = l.Before.Add(-unmetOverlap)
		}
		return markPosition(m)
	}
	s := page.Slice
	return encodeCursor(verb, "", nil, unmetPosition{
		Events: behind(page.Events), Waits: behind(page.Waits),
		Tenant: s.Tenant, Space: []byte(s.Namespace), Value: []byte(s.Value), Type: []byte(s.Type), Number: s.Number,
	})
}
