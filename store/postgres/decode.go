package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// columns reads the rows of one statement.
type columns = row.Columns

// source is one row in binary format, decoded by hand so that a column that does not decode spoils its row alone (R9).
type source struct {
	raw    [][]byte
	fields []pgconn.FieldDescription
	at     int
}

var _ row.Source = (*source)(nil)

func (s *source) next() []byte {
	v := s.raw[s.at]
	s.at++
	return v
}

// Column implements [row.Source].
func (s *source) Column() string { return s.fields[s.at-1].Name }

func (s *source) sized(n int) (v []byte, ok bool) {
	v = s.next()
	return v, len(v) == n
}

// Text implements [row.Source].
func (s *source) Text() (string, bool) {
	v := s.next()
	return string(v), v != nil
}

// Bigint implements [row.Source].
func (s *source) Bigint() (int64, bool) {
	v, ok := s.sized(8)
	if !ok {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(v)), true
}

// Integer implements [row.Source].
func (s *source) Integer() (int64, bool) {
	v, ok := s.sized(4)
	if !ok {
		return 0, false
	}
	return int64(int32(binary.BigEndian.Uint32(v))), true
}

// Boolean implements [row.Source].
func (s *source) Boolean() (value, ok bool) {
	v, ok := s.sized(1)
	return ok && v[0] != 0, ok
}

// Absent implements [row.Source].
func (s *source) Absent() bool {
	if s.raw[s.at] != nil {
		return false
	}
	s.at++
	return true
}

// Instant implements [row.Source]. No instant is infinite.
func (s *source) Instant() (time.Time, bool) {
	us, ok := s.Bigint()
	if !ok || us == math.MaxInt64 || us == math.MinInt64 {
		return time.Time{}, false
	}
	return time.UnixMicro(us + epoch).UTC(), true
}

// Bytes implements [row.Source].
func (s *source) Bytes() ([]byte, bool) {
	v := s.next()
	return append([]byte{}, v...), v != nil
}

// list reads a text[].
func (s *source) list() (items []string, ok bool) {
	v := s.next()
	if len(v) < 12 {
		return nil, false
	}
	if binary.BigEndian.Uint32(v) == 0 {
		return nil, true
	}
	if binary.BigEndian.Uint32(v) != 1 || len(v) < 20 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint32(v[12:]))
	items = make([]string, 0, n)
	for v = v[20:]; len(items) < n; {
		if len(v) < 4 {
			return nil, false
		}
		size := int(int32(binary.BigEndian.Uint32(v)))
		if v = v[4:]; size < 0 || size > len(v) {
			return nil, false
		}
		items = append(items, string(v[:size]))
		v = v[size:]
	}
	return items, true
}

// Pairs implements [row.Source]: a text[] of them one after the other.
func (s *source) Pairs() ([][2]string, bool) {
	flat, ok := s.list()
	if !ok || len(flat)%2 != 0 {
		return nil, false
	}
	list := make([][2]string, len(flat)/2)
	for i := range list {
		list[i] = [2]string{flat[2*i], flat[2*i+1]}
	}
	return list, true
}
