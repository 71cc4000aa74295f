package oauth

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// However many registrations there are, a bounded number of tokens is kept; what has expired goes first.
func TestTokensAreBounded(t *testing.T) {
	clk := clock.NewManual(time.Now())
	tokens := New(nil, clk, "1")
	put := func(name string, i int, good time.Duration) {
		tokens.put(Key{Run: fmt.Sprint(name, i)}, token{bearer: rendezvous.NewSecret("t"), expires: clk.Now().Add(good)})
	}
	for i := range most / 2 {
		put("short", i, time.Minute)
		put("long", i, time.Hour)
	}
	clk.Advance(time.Minute)
	put("new", 0, time.Hour)
	if n := len(tokens.kept); n != most/2+1 {
		t.Errorf("%d kept when half had expired", n)
	}
	for i := range most {
		put("more", i, time.Hour)
	}
	if n := len(tokens.kept); n > most || n < most-most/10 {
		t.Errorf("%d kept, %d may be", n, most)
	}
	if _, ok := tokens.kept[Key{Run: fmt.Sprint("more", most-1)}]; !ok {
		t.Error("the newest is not kept")
	}
}
