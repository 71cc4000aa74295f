package backend

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// R9: columns that contradict each other are named.
func TestUnsoundTimers(t *testing.T) {
	at := time.UnixMicro(7)
	sound := Timer{Class: rendezvous.TimerAuthor, FireAt: at, DueAt: at, ReadyAt: at}
	for name, change := range map[string]func(t *Timer){
		"":         func(*Timer) {},
		"class":    func(t *Timer) { t.Class = "tick" },
		"effect":   func(t *Timer) { t.Effect = "e" },
		"ready_at": func(t *Timer) { t.ReadyAt = at.Add(time.Microsecond) },
		"token":    func(t *Timer) { t.Token, t.Holder = 1, "pod/1" },
	} {
		row := sound
		change(&row)
		if got := row.Unsound(); got != name {
			t.Errorf("got %q, want %q of %+v", got, name, row)
		}
	}
	held := sound
	held.Class, held.Effect, held.Token, held.Holder, held.HeldUntil, held.ReadyAt = rendezvous.TimerWait, "e", 1, "pod/1", at.Add(1000), at.Add(1000)
	if got := held.Unsound(); got != "" {
		t.Errorf("a held timer of a wait: %q", got)
	}
	for name, l := range map[string]ShardLease{
		"": {Pool: TimerPool, Epoch: 1}, "pool": {Epoch: 1}, "epoch": {Pool: TimerPool}, "expires_at": {Pool: TimerPool, Epoch: 1, Owner: "pod/1"},
	} {
		if got := l.Unsound(); got != name {
			t.Errorf("got %q, want %q of %+v", got, name, l)
		}
	}
}
