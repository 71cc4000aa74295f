package postgres

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// of is a row of those columns.
func of(raw ...[]byte) *source {
	fields := make([]pgconn.FieldDescription, len(raw))
	for i := range fields {
		fields[i].Name = string(rune('a' + i))
	}
	return &source{raw: raw, fields: fields}
}

func eight(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func four(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// R9: a column that does not decode is remembered by its name, its value is none, and the columns behind it are read as ever.
func TestColumnsThatDoNotDecode(t *testing.T) {
	operator := func(c *columns) any {
		if o := c.Operator(); o != nil {
			return o
		}
		return nil
	}
	request := func(c *columns) any {
		if r := c.Request(rendezvous.RequestPause); r != nil {
			return r
		}
		return nil
	}
	for name, c := range map[string]struct {
		raw  [][]byte
		read func(c *columns) any
	}{
		"a NULL text":                {[][]byte{nil}, func(c *columns) any { return c.Text() }},
		"a short bigint":             {[][]byte{four(7)}, func(c *columns) any { return c.Bigint() }},
		"a negative count":           {[][]byte{eight(-1)}, func(c *columns) any { return c.Count() }},
		"a NULL count":               {[][]byte{nil}, func(c *columns) any { return c.Count() }},
		"a negative tally":           {[][]byte{four(-1)}, func(c *columns) any { return c.Tally() }},
		"a NULL boolean":             {[][]byte{nil}, func(c *columns) any { return c.Boolean() }},
		"a NULL instant":             {[][]byte{nil}, func(c *columns) any { return c.Instant() }},
		"an infinite instant":        {[][]byte{eight(math.MaxInt64)}, func(c *columns) any { return c.InstantOrNone() }},
		"a NULL list":                {[][]byte{nil}, func(c *columns) any { return len(c.Keys()) }},
		"half a pair of keys":        {[][]byte{texts([]string{"a", "b", "c"}, same)}, func(c *columns) any { return len(c.Keys()) }},
		"a cut list":                 {[][]byte{texts([]string{"abc"}, same)[:24]}, func(c *columns) any { return len(c.Keys()) }},
		"a list with a NULL":         {[][]byte{arrayHeader(pgtype.TextOID, 1, 0).null()}, func(c *columns) any { return len(c.Keys()) }},
		"half an operator":           {[][]byte{[]byte("kim"), {}}, operator},
		"an operator of no basis":    {[][]byte{[]byte("kim"), []byte("guessed")}, operator},
		"a request that is no JSON":  {[][]byte{[]byte("{")}, request},
		"a request of another kind":  {[][]byte{[]byte(`{"kind":"cancel","at":"2026-01-01T00:00:00Z"}`)}, request},
		"a status nobody knows":      {[][]byte{[]byte("sleeping")}, func(c *columns) any { c.Status(); return "" }},
		"what columns say together ": {[][]byte{[]byte("x")}, func(c *columns) any { c.Text(); c.Judge("a"); return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			cols := row.New(of(append(c.raw, []byte("behind"))...))
			switch v := c.read(cols).(type) {
			case nil, string, int, int64, bool, time.Time:
				if zero := map[any]bool{nil: true, "": true, 0: true, int64(0): true, false: true, time.Time{}: true}; !zero[v] {
					t.Errorf("read %v, want nothing", v)
				}
			default:
				t.Errorf("read %v, want nothing", v)
			}
			if last := rune('a' + len(c.raw) - 1); cols.Bad() != string(last) && cols.Bad() != "a" {
				t.Errorf("blames %q", cols.Bad())
			}
			if err := cols.Corrupt("row", "tenant", "acme"); rendezvous.CodeOf(err) != rendezvous.CodeCorrupt {
				t.Errorf("got %v, want corrupt", err)
			}
			if next := cols.Text(); next != "behind" {
				t.Errorf("the column behind it reads %q", next)
			}
		})
	}
}

// What arrays are built from is what lists are read to; the server's own reading is proved by the batteries.
func TestArrays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.String(), 0, 40).Draw(t, "texts")
		c := of(texts(want, same))
		if got, ok := c.list(); !slices.Equal(got, want) || !ok {
			t.Fatalf("got %q, want %q", got, want)
		}
		at := rapid.Int64Range(startOfTime.UnixMicro()+1, endOfTime.UnixMicro()-1).Draw(t, "instant")
		a := instants([]int64{at}, time.UnixMicro)
		c = of(a[len(a)-8:])
		if got, _ := c.Instant(); got.UnixMicro() != at || got.Location() != time.UTC {
			t.Fatalf("got %v, want %v", got, time.UnixMicro(at))
		}
	})
}
