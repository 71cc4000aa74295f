package backend

import (
	"strings"
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

// R9: likewise of push registrations.
func TestUnsoundPushes(t *testing.T) {
	at := time.UnixMicro(7)
	sound := Push{ID: "a", Namespace: rendezvous.PushCaller, NextSeq: 1, Version: 1, Incarnation: 1, State: rendezvous.PushLive, NextAttemptAt: at}
	leased := func(p *Push) { p.LeaseToken, p.LeaseOwner, p.LeaseUntil = 1, "pod", at }
	for name, change := range map[string]func(p *Push){
		"":              func(*Push) {},
		"state":         func(p *Push) { p.State = "asleep" },
		"namespace":     func(p *Push) { p.Namespace = rendezvous.PushOperator },
		"next_seq":      func(p *Push) { p.NextSeq = 0 },
		"version":       func(p *Push) { p.Incarnation = 0 },
		"parked_at":     func(p *Push) { p.State, p.ParkedAt = rendezvous.PushParked, at },
		"lease_token":   func(p *Push) { p.LeaseToken, p.LeaseOwner = 1, "pod" },
		"lease_revoked": func(p *Push) { leased(p); p.State = PushGone },
	} {
		row := sound
		change(&row)
		if got := row.Unsound(); got != name {
			t.Errorf("got %q, want %q of %+v", got, name, row)
		}
	}
	gone := sound
	leased(&gone)
	gone.State, gone.LeaseRevoked = PushGone, true
	if got := gone.Unsound(); got != "" {
		t.Errorf("a deleted one: %q", got)
	}
}

// PU-104: every kind has a bit of its own, and what takes all takes each.
func TestEachKindHasABit(t *testing.T) {
	seen := map[uint64]rendezvous.Kind{}
	all, err := rendezvous.CheckPushEvents("events", nil, rendezvous.PushCaller)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []rendezvous.Kind{
		rendezvous.EffectStarted, rendezvous.EffectDone, rendezvous.EffectFailed, rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.TimerCancelled,
		rendezvous.AttributesUpdated, rendezvous.Note,
	} {
		all = append(all, string(k))
	}
	if len(all) != 21 {
		t.Fatalf("%d kinds", len(all))
	}
	for _, k := range all {
		bit := KindBits(rendezvous.Kind(k))
		if other, taken := seen[bit]; taken || bit&(bit-1) != 0 || bit&AllKinds == 0 {
			t.Errorf("%s has %b, as %q", k, bit, other)
		}
		seen[bit] = rendezvous.Kind(k)
		if TakenKinds([]string{k}) != bit || TakenKinds([]string{rendezvous.AllEvents})&bit == 0 {
			t.Errorf("%s is not taken", k)
		}
	}
}

// PU-8: settings that do not decode are not told of in the error.
func TestPU8DamagedSettingsSayNothingOfThemselves(t *testing.T) {
	_, err := DecodePushSettings([]byte(`{"url":"https://pl4nted`), "r", "i")
	if err == nil || strings.Contains(err.Error(), "pl4nted") {
		t.Errorf("%v", err)
	}
}
