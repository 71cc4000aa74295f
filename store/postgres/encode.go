package postgres

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rendezvous-events/rendezvous"
)

// array is a one-dimensional array in PostgreSQL's binary format: a column of many rows as one parameter. It is built here in one go, because a general
// encoder boxes and plans every element, which for batches of 500 rows with 30 columns was a tenth of a worker's time.
type array []byte

// arrayCodec lets arrays through as they are and leaves all else to the codec it stands before.
type arrayCodec struct{ pgtype.Codec }

// PlanEncode implements [pgtype.Codec].
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(array); ok && format == pgtype.BinaryFormatCode {
		return verbatim{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type verbatim struct{}

// Encode implements [pgtype.EncodePlan].
func (verbatim) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(array)
	if len(a) > cap(buf)-len(buf) { // all parameters of a statement gather in one buffer: doubled, it is copied less often than append would
		buf = slices.Grow(buf, max(len(a), len(buf)))
	}
	return append(buf, a...), nil
}

// acceptArrays prepares a connection for parameters of type array.
func acceptArrays(conn *pgx.Conn) {
	types := conn.TypeMap()
	for _, oid := range [...]uint32{
		pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.Int4ArrayOID, pgtype.BoolArrayOID, pgtype.ByteaArrayOID, pgtype.TimestamptzArrayOID,
	} {
		if t, ok := types.TypeForOID(oid); ok {
			types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec}})
		}
	}
}

// arrayHeader is the head of an array of n elements of about that size each; an empty array has no dimension.
func arrayHeader(element uint32, n, size int) array {
	a := make(array, 0, 20+n*(4+size))
	dimensions := uint32(1)
	if n == 0 {
		dimensions = 0
	}
	a = binary.BigEndian.AppendUint32(a, dimensions)
	a = binary.BigEndian.AppendUint32(a, 1) // elements may be NULL
	a = binary.BigEndian.AppendUint32(a, element)
	if n > 0 {
		a = binary.BigEndian.AppendUint32(a, uint32(n))
		a = binary.BigEndian.AppendUint32(a, 1) // the first element is number 1
	}
	return a
}

func (a array) null() array { return binary.BigEndian.AppendUint32(a, 1<<32-1) }

func (a array) size(n int) array { return binary.BigEndian.AppendUint32(a, uint32(n)) }

// texts is the column of those texts, of rows.
func texts[T any](rows []T, value func(T) string) array {
	a := arrayHeader(pgtype.TextOID, len(rows), 16)
	for _, row := range rows {
		s := value(row)
		a = append(a.size(len(s)), s...)
	}
	return a
}

// documents is the column of JSON documents; "" is NULL.
func documents[T any](rows []T, value func(T) string) array {
	a := arrayHeader(pgtype.TextOID, len(rows), 16)
	for _, row := range rows {
		if s := value(row); s == "" {
			a = a.null()
		} else {
			a = append(a.size(len(s)), s...)
		}
	}
	return a
}

// blobs is the column of bytes; nil is NULL and empty is empty.
func blobs[T any](rows []T, value func(T) []byte) array {
	size := 0
	for _, row := range rows {
		size += len(value(row))
	}
	a := arrayHeader(pgtype.ByteaOID, len(rows), size/max(len(rows), 1)+1)
	for _, row := range rows {
		if b := value(row); b == nil {
			a = a.null()
		} else {
			a = append(a.size(len(b)), b...)
		}
	}
	return a
}

func bigints[T any](rows []T, value func(T) int64) array {
	a := arrayHeader(pgtype.Int8OID, len(rows), 8)
	for _, row := range rows {
		a = binary.BigEndian.AppendUint64(a.size(8), uint64(value(row)))
	}
	return a
}

// bigintsOrNull is the column of numbers of which 0 is none.
func bigintsOrNull[T any](rows []T, value func(T) int64) array {
	a := arrayHeader(pgtype.Int8OID, len(rows), 8)
	for _, row := range rows {
		if n := value(row); n == 0 {
			a = a.null()
		} else {
			a = binary.BigEndian.AppendUint64(a.size(8), uint64(n))
		}
	}
	return a
}

func integers[T any](rows []T, value func(T) int) array {
	a := arrayHeader(pgtype.Int4OID, len(rows), 4)
	for _, row := range rows {
		a = binary.BigEndian.AppendUint32(a.size(4), uint32(int32(value(row))))
	}
	return a
}

// integersOrNull is a list of numbers as a parameter, NULL where there is no list.
func integersOrNull(list []int) any {
	if list == nil {
		return nil
	}
	return integers(list, func(n int) int { return n })
}

func booleans[T any](rows []T, value func(T) bool) array {
	a := arrayHeader(pgtype.BoolOID, len(rows), 1)
	for _, row := range rows {
		b := byte(0)
		if value(row) {
			b = 1
		}
		a = append(a.size(1), b)
	}
	return a
}

// epoch is PostgreSQL's: 2000-01-01 in microseconds since 1970.
const epoch = 946_684_800_000_000

// instants is the column of instants; the zero time is NULL.
func instants[T any](rows []T, value func(T) time.Time) array {
	a := arrayHeader(pgtype.TimestamptzOID, len(rows), 8)
	for _, row := range rows {
		if t := value(row); t.IsZero() {
			a = a.null()
		} else {
			a = binary.BigEndian.AppendUint64(a.size(8), uint64(t.UnixMicro()-epoch))
		}
	}
	return a
}

// pairs is the column of lists of pairs. An array of arrays of different lengths does not exist, so each list travels as the text of an array.
func pairs[T any](rows []T, value func(T) []string) array {
	a := arrayHeader(pgtype.TextOID, len(rows), 48)
	var list []byte
	for _, row := range rows {
		list = append(list[:0], '{')
		for i, s := range value(row) {
			if i > 0 {
				list = append(list, ',')
			}
			list = appendQuoted(list, s)
		}
		list = append(list, '}')
		a = append(a.size(len(list)), list...)
	}
	return a
}

func appendQuoted(list []byte, s string) []byte {
	list = append(list, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			list = append(list, '\\')
		}
		list = append(list, s[i])
	}
	return append(list, '"')
}

// flatKeys is a set of keys as it is stored.
func flatKeys(keys []rendezvous.Key) []string {
	flat := make([]string, 0, 2*len(keys))
	for _, k := range keys {
		flat = append(flat, k.Namespace, k.Value)
	}
	return flat
}

func flatLinks(links []rendezvous.Trace) []string {
	flat := make([]string, 0, 2*len(links))
	for _, l := range links {
		flat = append(flat, l.Parent, l.State)
	}
	return flat
}

func requestDocument(r *rendezvous.Request) string {
	if r == nil {
		return ""
	}
	raw, err := json.Marshal(r)
	if err != nil {
		panic("store/postgres: encode a request: " + err.Error()) // strings and an instant always encode
	}
	return string(raw)
}

func actor(o *rendezvous.Operator) string {
	if o == nil {
		return ""
	}
	return o.Actor
}

func basis(o *rendezvous.Operator) string {
	if o == nil {
		return ""
	}
	return string(o.Basis)
}
