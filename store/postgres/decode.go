package postgres

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// columns reads one row, in binary format, column by column. It decodes by hand so that a column that does not decode spoils its row alone (R9): a NULL where
// none may be, a value of the wrong size or an unknown word is remembered, and the reading goes on. A value it could not read is the zero value.
type columns struct {
	raw    [][]byte
	fields []pgconn.FieldDescription
	at     int
	bad    string // the name of the first column that does not decode
}

func (c *columns) next() []byte {
	v := c.raw[c.at]
	c.at++
	return v
}

// fail remembers the column just read.
func (c *columns) fail() {
	if c.bad == "" {
		c.bad = c.fields[c.at-1].Name
	}
}

// judge remembers a fault of several columns together, "" for none.
func (c *columns) judge(unsound string) {
	if c.bad == "" {
		c.bad = unsound
	}
}

func (c *columns) sized(n int) []byte {
	v := c.next()
	if len(v) != n {
		c.fail()
		return nil
	}
	return v
}

func (c *columns) text() string {
	v := c.next()
	if v == nil {
		c.fail()
	}
	return string(v)
}

func (c *columns) bigint() int64 {
	if v := c.sized(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// count reads a number that is never negative.
func (c *columns) count() int64 {
	n := c.bigint()
	if n < 0 {
		c.fail()
		return 0
	}
	return n
}

func (c *columns) integer() int {
	if v := c.sized(4); v != nil {
		return int(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

// tally reads an integer that is never negative.
func (c *columns) tally() int {
	n := c.integer()
	if n < 0 {
		c.fail()
		return 0
	}
	return n
}

func (c *columns) boolean() bool {
	v := c.sized(1)
	return v != nil && v[0] != 0
}

// absent steps over a NULL.
func (c *columns) absent() bool {
	if c.raw[c.at] != nil {
		return false
	}
	c.at++
	return true
}

func (c *columns) instant() time.Time {
	v := c.sized(8)
	if v == nil {
		return time.Time{}
	}
	us := int64(binary.BigEndian.Uint64(v))
	if us == math.MaxInt64 || us == math.MinInt64 { // infinity
		c.fail()
		return time.Time{}
	}
	return time.UnixMicro(us + epoch).UTC()
}

// instantOrNone reads an instant that may be absent: the zero time.
func (c *columns) instantOrNone() time.Time {
	if c.absent() {
		return time.Time{}
	}
	return c.instant()
}

// bytes reads bytes that may be absent: nil.
func (c *columns) bytes() []byte {
	if c.absent() {
		return nil
	}
	return append([]byte{}, c.next()...)
}

// list reads a text[].
func (c *columns) list() []string {
	v := c.next()
	if len(v) < 12 {
		c.fail()
		return nil
	}
	if binary.BigEndian.Uint32(v) == 0 {
		return nil
	}
	if binary.BigEndian.Uint32(v) != 1 || len(v) < 20 {
		c.fail()
		return nil
	}
	n := int(binary.BigEndian.Uint32(v[12:]))
	items := make([]string, 0, n)
	for v = v[20:]; len(items) < n; {
		if len(v) < 4 {
			c.fail()
			return nil
		}
		size := int(int32(binary.BigEndian.Uint32(v)))
		if v = v[4:]; size < 0 || size > len(v) {
			c.fail()
			return nil
		}
		items = append(items, string(v[:size]))
		v = v[size:]
	}
	return items
}

// pairs reads a text[] of pairs.
func (c *columns) pairs() []string {
	flat := c.list()
	if len(flat)%2 != 0 {
		c.fail()
		return nil
	}
	return flat
}

func (c *columns) keys() []rendezvous.Key {
	flat := c.pairs()
	if len(flat) == 0 {
		return nil
	}
	keys := make([]rendezvous.Key, 0, len(flat)/2)
	for i := 0; i < len(flat); i += 2 {
		keys = append(keys, rendezvous.Key{Namespace: flat[i], Value: flat[i+1]})
	}
	return keys
}

func (c *columns) links() []rendezvous.Trace {
	flat := c.pairs()
	var links []rendezvous.Trace
	for i := 0; i < len(flat); i += 2 {
		links = append(links, rendezvous.Trace{Parent: flat[i], State: flat[i+1]})
	}
	return links
}

// operator reads actor and basis: both or neither.
func (c *columns) operator() *rendezvous.Operator {
	o := &rendezvous.Operator{Actor: c.text(), Basis: rendezvous.Basis(c.text())}
	switch {
	case o.Actor == "" && o.Basis == "":
		return nil
	case o.Check("operator") != nil:
		c.fail()
		return nil
	}
	return o
}

// request reads a pending request of that kind.
func (c *columns) request(kind rendezvous.RequestKind) *rendezvous.Request {
	if c.absent() {
		return nil
	}
	var r rendezvous.Request
	if err := json.Unmarshal(c.next(), &r); err != nil || r.Kind != kind || r.At.IsZero() {
		c.fail()
		return nil
	}
	r.At = r.At.UTC()
	return &r
}

// status reads a status, of workflows or of runs.
func (c *columns) status() rendezvous.Status {
	s := rendezvous.Status(c.text())
	if !s.Known() {
		c.fail()
	}
	return s
}

// corrupt names the row that does not decode, nil where it does. No value of the row but its key is told.
func (c *columns) corrupt(what string, key ...any) error {
	if c.bad == "" {
		return nil
	}
	return backend.Corrupt(what, c.bad, key...)
}
