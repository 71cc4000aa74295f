package sqlite

import (
	"encoding/json"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// columns reads one row column by column. A column that does not decode spoils its row alone (R9): a NULL where none may be, a value of another type or an
// unknown word is remembered, and the reading goes on. A value it could not read is the zero value.
type columns struct {
	stmt *sqlite.Stmt
	at   int
	bad  string // the name of the first column that does not decode
}

// typed steps to the next column and reports whether it is of that type.
func (c *columns) typed(want sqlite.ColumnType) bool {
	at := c.at
	c.at++
	if c.stmt.ColumnType(at) == want {
		return true
	}
	c.fail()
	return false
}

// fail remembers the column just read.
func (c *columns) fail() {
	if c.bad == "" {
		c.bad = c.stmt.ColumnName(c.at - 1)
	}
}

// judge remembers a fault of several columns together, "" for none.
func (c *columns) judge(unsound string) {
	if c.bad == "" {
		c.bad = unsound
	}
}

func (c *columns) text() string {
	if !c.typed(sqlite.TypeText) {
		return ""
	}
	return c.stmt.ColumnText(c.at - 1)
}

func (c *columns) number() int64 {
	if !c.typed(sqlite.TypeInteger) {
		return 0
	}
	return c.stmt.ColumnInt64(c.at - 1)
}

// count reads a number that is never negative.
func (c *columns) count() int64 {
	n := c.number()
	if n < 0 {
		c.fail()
		return 0
	}
	return n
}

// tally is count as an int.
func (c *columns) tally() int { return int(c.count()) }

func (c *columns) boolean() bool { return c.number() != 0 }

// absent steps over a NULL.
func (c *columns) absent() bool {
	if c.stmt.ColumnType(c.at) != sqlite.TypeNull {
		return false
	}
	c.at++
	return true
}

// Instants lie in the years 1 to 9999.
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastInstant  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1
)

func (c *columns) instant() time.Time {
	us := c.number()
	if us < firstInstant || us > lastInstant {
		c.fail()
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
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
	if c.absent() || !c.typed(sqlite.TypeBlob) {
		return nil
	}
	at := c.at - 1
	b := make([]byte, c.stmt.ColumnLen(at))
	c.stmt.ColumnBytes(at, b)
	return b
}

// pairs reads a list of pairs.
func (c *columns) pairs() [][]string {
	var list [][]string
	text := c.text()
	if text == "[]" {
		return nil
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		c.fail()
		return nil
	}
	for _, p := range list {
		if len(p) != 2 {
			c.fail()
			return nil
		}
	}
	return list
}

func (c *columns) keys() []rendezvous.Key {
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

func (c *columns) links() []rendezvous.Trace {
	var links []rendezvous.Trace
	for _, p := range c.pairs() {
		links = append(links, rendezvous.Trace{Parent: p[0], State: p[1]})
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
	if err := json.Unmarshal([]byte(c.text()), &r); err != nil || r.Kind != kind || r.At.IsZero() {
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

// corrupt names the row that does not decode, nil where it does.
func (c *columns) corrupt(what string, key ...any) error {
	if c.bad == "" {
		return nil
	}
	return backend.Corrupt(what, c.bad, key...)
}

// keysText is a set of keys as it is stored.
func keysText(keys []rendezvous.Key) string {
	list := make([][2]string, len(keys))
	for i, k := range keys {
		list[i] = [2]string{k.Namespace, k.Value}
	}
	return pairsText(list)
}

// keyText is how a key stands in the text of a set that has it: quotes within texts are escaped, so it stands nowhere else.
func keyText(k rendezvous.Key) string {
	return strings.TrimSuffix(strings.TrimPrefix(keysText([]rendezvous.Key{k}), "["), "]")
}

func linksText(links []rendezvous.Trace) string {
	list := make([][2]string, len(links))
	for i, l := range links {
		list[i] = [2]string{l.Parent, l.State}
	}
	return pairsText(list)
}

func pairsText(list [][2]string) string {
	raw, err := json.Marshal(list)
	if err != nil {
		panic("store/sqlite: encode pairs: " + err.Error()) // strings always encode
	}
	return string(raw)
}

// listText is a list of words as a parameter that json_each reads.
func listText[T ~string](list []T) string {
	if list == nil {
		list = []T{}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		panic("store/sqlite: encode a list: " + err.Error()) // strings always encode
	}
	return string(raw)
}

// requestText is a pending request as it is stored, nil for none.
func requestText(r *rendezvous.Request) any {
	if r == nil {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		panic("store/sqlite: encode a request: " + err.Error()) // strings and an instant always encode
	}
	return string(raw)
}

// operatorTexts are actor and basis as they are stored.
func operatorTexts(o *rendezvous.Operator) (actor, basis string) {
	if o == nil {
		return "", ""
	}
	return o.Actor, string(o.Basis)
}
