package move

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Sum adds up rows, whatever their order: the sum of their hashes, in four parts so that it can be added to.
type Sum [4]uint64

// add adds a row of an encoding.
func (s *Sum) add(row []byte) {
	hash := sha256.Sum256(row)
	for i := range s {
		s[i] += binary.BigEndian.Uint64(hash[8*i:])
	}
}

// String is the sum in hexadecimal.
func (s Sum) String() string {
	var raw [32]byte
	for i, part := range s {
		binary.BigEndian.PutUint64(raw[8*i:], part)
	}
	return hex.EncodeToString(raw[:])
}

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != 32 {
		return fmt.Errorf("%.80q is no sum", text)
	}
	for i := range s {
		s[i] = binary.BigEndian.Uint64(raw[8*i:])
	}
	return nil
}

// Tally counts rows and sums them up.
type Tally struct {
	Rows int64 `json:"rows"`
	Sum  Sum   `json:"sum"`
}

// add adds the rows of a page.
func (t *Tally) add(p *backend.Page) {
	var row []byte
	each(p, func(v reflect.Value) {
		row = encode(row[:0], v)
		t.Sum.add(row)
		t.Rows++
	})
}

// each visits the rows of a page.
func each(p *backend.Page, visit func(v reflect.Value)) {
	for _, rows := range [...]any{p.NewWorkflows, p.NewRuns, p.Records, p.NewBatches, p.Remnants, p.NewEvents, p.NewWaits, p.Woken, p.Timers, p.NewShardLeases, p.NewPushes, p.PushLog} {
		for v, i := reflect.ValueOf(rows), 0; i < v.Len(); i++ {
			visit(v.Index(i).Elem())
		}
	}
}

// unsummed are fields that are no columns, or that say how often a row was written.
var unsummed = map[string]bool{
	"Workflow.Corrupt": true, "Record.PayloadOf": true, "Woken.Anew": true,
	"Event.Version": true, "Event.Keyed": true, "Event.Listed": true, "Event.HasPayload": true, "Event.PayloadSize": true, "Event.Shed": true, "Event.Rekey": true, "Event.Corrupt": true,
	"Timer.Corrupt": true, "Push.Corrupt": true, "Push.Resettled": true,
	"Wait.Version": true, "Wait.Keyed": true, "Wait.Corrupt": true,
}

// encode writes all columns of a row, so that no two rows that differ have one encoding. New columns are taken by themselves.
func encode(b []byte, v reflect.Value) []byte {
	if t, ok := v.Interface().(time.Time); ok {
		if t.IsZero() {
			return append(b, 0)
		}
		return binary.AppendVarint(append(b, 1), t.UnixMicro())
	}
	if s, ok := v.Interface().(backend.PushSettings); ok { // as it is stored: secrets show themselves to nobody else
		raw := backend.EncodePushSettings(s)
		return append(binary.AppendUvarint(b, uint64(len(raw))), raw...)
	}
	switch v.Kind() {
	case reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return encode(append(b, 1), v.Elem())
	case reflect.Slice:
		return encodeSlice(b, v)
	case reflect.Struct:
		for i := range v.NumField() {
			if !unsummed[v.Type().Name()+"."+v.Type().Field(i).Name] {
				b = encode(b, v.Field(i))
			}
		}
		return b
	}
	panic(fmt.Sprintf("store/move: a column of type %s", v.Type()))
}

// encodeSlice keeps bytes that are none apart from bytes that are empty; other lists have no such difference.
func encodeSlice(b []byte, v reflect.Value) []byte {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.IsNil() {
			return append(b, 0)
		}
		return append(binary.AppendUvarint(append(b, 1), uint64(v.Len())), v.Bytes()...)
	}
	b = binary.AppendUvarint(b, uint64(v.Len()))
	for i := range v.Len() {
		b = encode(b, v.Index(i))
	}
	return b
}

// layout stands for what sums are made of: those of builds that store other columns cannot be compared.
func layout() string {
	var text []byte
	var describe func(t reflect.Type)
	describe = func(t reflect.Type) {
		text = append(append(text, t.String()...), ' ')
		switch {
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
			describe(t.Elem())
		case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
			for i := range t.NumField() {
				if f := t.Field(i); !unsummed[t.Name()+"."+f.Name] {
					text = append(append(text, f.Name...), ' ')
					describe(f.Type)
				}
			}
		}
	}
	for _, t := range [...]reflect.Type{
		reflect.TypeFor[backend.Workflow](), reflect.TypeFor[backend.Run](), reflect.TypeFor[backend.Record](), reflect.TypeFor[backend.Batch](), reflect.TypeFor[backend.Remnant](),
		reflect.TypeFor[backend.Event](), reflect.TypeFor[backend.Wait](), reflect.TypeFor[backend.Woken](),
		reflect.TypeFor[backend.Timer](), reflect.TypeFor[backend.ShardLease](), reflect.TypeFor[backend.Push](), reflect.TypeFor[backend.PushLogEntry](),
	} {
		describe(t)
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:8])
}
