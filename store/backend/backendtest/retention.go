package backendtest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var retentionCases = []backendCase{
	{"old letters: those that lists show, by the time of their death, behind a position", oldLetters},
	{"a page of old letters is fair by tenant and says when more was due", oldLettersFair},
}

func (x *bench) oldLetters(before time.Time, after backend.LetterPosition, limit int) (ids []string, more bool) {
	x.Helper()
	x.update(func(tx backend.Tx) {
		rows, m, err := tx.OldLetters(ctx, before, after, limit)
		if err != nil {
			x.Fatal(err)
		}
		ids, more = idsOf(rows), m
	})
	return ids, more
}

func oldLetters(x *bench) {
	begin := x.now()
	x.stored(acme, "live", key("1"))
	first := x.letter(acme, "first", rendezvous.DeadUnclaimed, key("1"))
	x.purged(x.letter(acme, "purged", rendezvous.DeadUnclaimed))
	raised := x.letter(acme, "raised", rendezvous.DeadUnclaimed)
	raised.State, raised.DeadAt = rendezvous.EventLive, time.Time{}
	x.apply(&backend.Changes{Events: []*backend.Event{raised}})
	x.letter(globex, "second", rendezvous.DeadErased)
	x.advance(time.Second)
	x.letter(acme, "third", rendezvous.DeadExpired)
	x.letter(acme, "fourth", rendezvous.DeadExpired)

	ids, more := x.oldLetters(begin.Add(-time.Microsecond), backend.LetterPosition{}, 10)
	eq(x, "old too early", ids, nil)
	eq(x, "more", more, false)
	ids, _ = x.oldLetters(begin, backend.LetterPosition{}, 10)
	eq(x, "old at the bound", ids, []string{"first", "second"})
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 10)
	eq(x, "old", ids, []string{"first", "second", "third", "fourth"})
	eq(x, "more", more, false)
	ids, _ = x.oldLetters(x.now(), backend.LetterPosition{Set: true, At: first.DeadAt, Number: first.Number}, 10)
	eq(x, "behind the first", ids, []string{"second", "third", "fourth"})
	x.purged(first)
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 2)
	eq(x, "a page", ids, []string{"second", "third"})
	eq(x, "more", more, true)
}

func oldLettersFair(x *bench) {
	for i := range 8 {
		x.letter(acme, fmt.Sprint("many", i), rendezvous.DeadUnclaimed)
	}
	x.advance(time.Second)
	x.letter(globex, "one", rendezvous.DeadUnclaimed)
	ids, more := x.oldLetters(x.now(), backend.LetterPosition{}, 4)
	eq(x, "page", ids, []string{"many0", "many1", "many2", "one"})
	eq(x, "more", more, true)
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 9)
	eq(x, "whole page", len(ids), 9)
	eq(x, "more", more, false)
}
