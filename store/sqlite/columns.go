package sqlite

import (
	"encoding/json"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// columns reads the rows of one statement.
type columns = row.Columns

// source is the row a statement stands at.
type source struct {
	stmt *sqlite.Stmt
	at   int
}

var _ row.Source = (*source)(nil)

// Column implements [row.Source].
func (s *source) Column() string { return s.stmt.ColumnName(s.at - 1) }

// typed steps to the next column and reports whether it is of that type.
func (s *source) typed(want sqlite.ColumnType) (at int, ok bool) {
	at = s.at
	s.at++
	return at, s.stmt.ColumnType(at) == want
}

// Text implements [row.Source].
func (s *source) Text() (string, bool) {
	at, ok := s.typed(sqlite.TypeText)
	if !ok {
		return "", false
	}
	return s.stmt.ColumnText(at), true
}

// Bigint implements [row.Source].
func (s *source) Bigint() (int64, bool) {
	at, ok := s.typed(sqlite.TypeInteger)
	if !ok {
		return 0, false
	}
	return s.stmt.ColumnInt64(at), true
}

// Integer implements [row.Source].
func (s *source) Integer() (int64, bool) { return s.Bigint() }

// Boolean implements [row.Source].
func (s *source) Boolean() (value, ok bool) {
	n, ok := s.Bigint()
	return n != 0, ok
}

// Absent implements [row.Source].
func (s *source) Absent() bool {
	if s.stmt.ColumnType(s.at) != sqlite.TypeNull {
		return false
	}
	s.at++
	return true
}

// Instants lie in the years 1 to 9999.
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastInstant  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1
)

// Instant implements [row.Source].
func (s *source) Instant() (time.Time, bool) {
	us, ok := s.Bigint()
	if !ok || us < firstInstant || us > lastInstant {
		return time.Time{}, false
	}
	return time.UnixMicro(us).UTC(), true
}

// Bytes implements [row.Source].
func (s *source) Bytes() ([]byte, bool) {
	at, ok := s.typed(sqlite.TypeBlob)
	if !ok {
		return nil, false
	}
	b := make([]byte, s.stmt.ColumnLen(at))
	s.stmt.ColumnBytes(at, b)
	return b, true
}

// Pairs implements [row.Source]: JSON, an array of arrays of two.
func (s *source) Pairs() ([][2]string, bool) {
	text, ok := s.Text()
	if !ok || text == "[]" {
		return nil, ok
	}
	var list [][]string
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil, false
	}
	pairs := make([][2]string, len(list))
	for i, p := range list {
		if len(p) != 2 {
			return nil, false
		}
		pairs[i] = [2]string{p[0], p[1]}
	}
	return pairs, true
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

// listText is a list of words or numbers as a parameter that json_each reads.
func listText[T ~string | ~int | ~int64](list []T) string {
	if list == nil {
		list = []T{}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		panic("store/sqlite: encode a list: " + err.Error()) // strings and numbers always encode
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
