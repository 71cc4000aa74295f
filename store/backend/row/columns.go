// Package row decodes rows of backends that keep them in columns: in the same order and judged alike in all of them, whatever a driver hands over. The order of
// a row's columns is that of the fields read here; what a statement selects follows it.
package row

import (
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Source is one row, column by column: each method reads the next one, and ok is false where it is not of that type or NULL.
type Source interface {
	Text() (v string, ok bool)
	Bigint() (v int64, ok bool)
	Integer() (v int64, ok bool) // of few bits where there are such
	Boolean() (v, ok bool)
	Instant() (v time.Time, ok bool)
	Bytes() (v []byte, ok bool)
	Pairs() (v [][2]string, ok bool)
	// Absent steps over a NULL, and reports whether there was one.
	Absent() bool
	// Column is the name of the column just read.
	Column() string
}

// Columns reads rows. A column that does not decode spoils its row alone (R9): it is remembered, and the reading goes on. A value it could not read is the zero
// value.
type Columns struct {
	src Source
	bad string // the name of the first column that does not decode
}

// New reads from a source, which stands before its first row.
func New(src Source) *Columns { return &Columns{src: src} }

// Next begins another row.
func (c *Columns) Next() { c.bad = "" }

// Bad is the name of the first column of the row that does not decode, "" for none.
func (c *Columns) Bad() string { return c.bad }

// Judge remembers a fault of several columns together, "" for none.
func (c *Columns) Judge(unsound string) {
	if c.bad == "" {
		c.bad = unsound
	}
}

// Corrupt names the row that does not decode, nil where it does. No value of the row but its key is told.
func (c *Columns) Corrupt(what string, key ...any) error {
	if c.bad == "" {
		return nil
	}
	return backend.Corrupt(what, c.bad, key...)
}

// ok remembers the column just read unless it is good.
func (c *Columns) ok(good bool) bool {
	if !good {
		c.Judge(c.src.Column())
	}
	return good
}

// Absent steps over a NULL.
func (c *Columns) Absent() bool { return c.src.Absent() }

// Text reads a text.
func (c *Columns) Text() string {
	v, ok := c.src.Text()
	c.ok(ok)
	return v
}

// Bigint reads a number.
func (c *Columns) Bigint() int64 {
	v, ok := c.src.Bigint()
	c.ok(ok)
	return v
}

// Count reads a number that is never negative.
func (c *Columns) Count() int64 { return c.positive(c.Bigint()) }

// Integer reads a small number.
func (c *Columns) Integer() int {
	v, ok := c.src.Integer()
	c.ok(ok)
	return int(v)
}

// Tally reads a small number that is never negative.
func (c *Columns) Tally() int { return int(c.positive(int64(c.Integer()))) }

func (c *Columns) positive(n int64) int64 {
	if !c.ok(n >= 0) {
		return 0
	}
	return n
}

// Boolean reads true or false.
func (c *Columns) Boolean() bool {
	v, ok := c.src.Boolean()
	c.ok(ok)
	return v
}

// Instant reads an instant.
func (c *Columns) Instant() time.Time {
	v, ok := c.src.Instant()
	c.ok(ok)
	return v
}

// InstantOrNone reads an instant that may be absent: the zero time.
func (c *Columns) InstantOrNone() time.Time {
	if c.Absent() {
		return time.Time{}
	}
	return c.Instant()
}

// Bytes reads bytes that may be absent: nil.
func (c *Columns) Bytes() []byte {
	if c.Absent() {
		return nil
	}
	v, ok := c.src.Bytes()
	c.ok(ok)
	return v
}

func (c *Columns) pairs() [][2]string {
	v, ok := c.src.Pairs()
	c.ok(ok)
	return v
}

// Keys reads a set of keys.
func (c *Columns) Keys() []rendezvous.Key {
	list := c.pairs()
	if len(list) == 0 {
		return nil
	}
	keys := make([]rendezvous.Key, len(list))
	for i, p := range list {
		keys[i] = rendezvous.Key{Namespace: p[0], Value: p[1]}
	}
	return keys
}

func (c *Columns) links() []rendezvous.Trace {
	var links []rendezvous.Trace
	for _, p := range c.pairs() {
		links = append(links, rendezvous.Trace{Parent: p[0], State: p[1]})
	}
	return links
}

// Operator reads actor and basis: both or neither.
func (c *Columns) Operator() *rendezvous.Operator {
	o := &rendezvous.Operator{Actor: c.Text(), Basis: rendezvous.Basis(c.Text())}
	if o.Actor == "" && o.Basis == "" || !c.ok(o.Check("operator") == nil) {
		return nil
	}
	return o
}

// Request reads a pending request of that kind.
func (c *Columns) Request(kind rendezvous.RequestKind) *rendezvous.Request {
	if c.Absent() {
		return nil
	}
	var r rendezvous.Request
	if !c.ok(json.Unmarshal([]byte(c.Text()), &r) == nil && r.Kind == kind && !r.At.IsZero()) {
		return nil
	}
	r.At = r.At.UTC()
	return &r
}

// Status reads a status, of workflows or of runs.
func (c *Columns) Status() rendezvous.Status {
	s := rendezvous.Status(c.Text())
	c.ok(s.Known())
	return s
}
