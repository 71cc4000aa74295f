package difftest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// SweepUnclaimed is the verb: of a tenant, or of all where none is named. Age is how long before the store's now the window ends.
type SweepUnclaimed struct {
	Tenant string
	Age    time.Duration
	Reason string
	Limit  int
	At     time.Duration
}

func (w SweepUnclaimed) ask(s *side) (any, error) {
	now, err := s.plain.Now(ctx)
	if err != nil {
		return nil, err
	}
	var of store.Sweeper = s.store
	if w.Tenant != "" {
		if of, err = s.of(w.Tenant); err != nil {
			return nil, err
		}
	}
	return of.SweepUnclaimed(ctx, now.Add(-w.Age), at(w.At), w.Reason, w.Limit)
}

// Dead chooses dead letters. Instants are behind Base, and 0 is none.
type Dead struct {
	Reason, Type, Source, Key                            string
	ReceivedAfter, ReceivedBefore, DeadAfter, DeadBefore time.Duration
}

func (d Dead) filter() store.DeadFilter {
	f := store.DeadFilter{
		Reason: rendezvous.DeadReason(d.Reason), Type: d.Type, Source: d.Source,
		ReceivedAfter: at(d.ReceivedAfter), ReceivedBefore: at(d.ReceivedBefore), DeadAfter: at(d.DeadAfter), DeadBefore: at(d.DeadBefore),
	}
	if d.Key != "" {
		of := key(d.Key)
		f.Key = &of
	}
	return f
}

// DeadLetters is the verb, page by page, and CountDeadLetters with it.
type DeadLetters struct {
	Tenant              string
	Of                  Dead
	Payload             bool
	Limit, Cursor, Most int
}

func (l DeadLetters) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	all, err := s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, err := t.DeadLetters(ctx, l.Of.filter(), l.Limit, cursor, l.Payload)
		return got.Letters, got.NextCursor, err
	})
	count, failed := t.CountDeadLetters(ctx, l.Of.filter(), l.Most, true)
	return []any{all, count, failed}, err
}

// RequeueDeadLetters is the verb. A bound is a filter's.
type RequeueDeadLetters struct {
	Tenant   string
	Events   []Name // of the tenant
	Of       Dead
	Bound    int
	To       string
	Expires  time.Duration
	Operator string
	Op       string
	At       time.Duration
}

func (r RequeueDeadLetters) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	how := store.Requeue{To: s.id(r.To), ExpiresAt: at(r.Expires)}
	return t.RequeueDeadLetters(ctx, selection(r.Events, r.Of, r.Bound), how, whom(r.Operator), r.Op, at(r.At))
}

// PurgeDeadLetters is the verb. A bound is a filter's.
type PurgeDeadLetters struct {
	Tenant   string
	Events   []Name // of the tenant
	Of       Dead
	Bound    int
	Operator string
	Op       string
	At       time.Duration
}

func (p PurgeDeadLetters) ask(s *side) (any, error) {
	t, err := s.of(p.Tenant)
	if err != nil {
		return nil, err
	}
	return t.PurgeDeadLetters(ctx, selection(p.Events, p.Of, p.Bound), whom(p.Operator), p.Op, at(p.At))
}

func selection(events []Name, of Dead, bound int) store.Selection {
	var sel store.Selection
	for _, e := range events {
		sel.Events = append(sel.Events, rendezvous.EventID{Source: e.Source, ID: e.ID})
	}
	if sel.Bound = bound; bound != 0 {
		f := of.filter()
		sel.Filter = &f
	}
	return sel
}

// whom is an operator that may be left out.
func whom(actor string) rendezvous.Operator {
	if o := operator(actor); o != nil {
		return *o
	}
	return rendezvous.Operator{}
}

var deadChoices = []choice{
	{4, func(d drawer) Step {
		w := SweepUnclaimed{
			Age: one(d, []time.Duration{0, 0, 5 * time.Second, time.Minute, -time.Second}), Reason: one(d, []string{"", "", "é\nx"}), Limit: d.limit(), At: d.at(),
		}
		if d.chance(2) {
			w.Tenant = d.tenant()
		}
		return w
	}},
	{3, func(d drawer) Step {
		return DeadLetters{Tenant: d.tenant(), Of: d.dead(), Payload: d.chance(2), Limit: d.limit(), Cursor: d.cursor(), Most: d.rare(3)}
	}},
	{4, func(d drawer) Step {
		r := RequeueDeadLetters{
			Tenant: d.tenant(), Of: d.dead(), To: one(d, append([]string{"", "", "", "broadcast"}, runs...)), Operator: one(d, []string{"kim", "kim", "Éa", ""}),
			Op: d.op(), At: d.at(),
		}
		if r.Events, r.Bound = d.letters(r.Tenant); d.chance(4) {
			r.Expires = d.w.now + one(d, []time.Duration{5 * time.Second, time.Hour, -time.Second, 31 * 24 * time.Hour})
		}
		return r
	}},
	{2, func(d drawer) Step {
		p := PurgeDeadLetters{Tenant: d.tenant(), Of: d.dead(), Operator: one(d, []string{"kim", "kim", "Éa", ""}), Op: d.op(), At: d.at()}
		p.Events, p.Bound = d.letters(p.Tenant)
		return p
	}},
}

// op is mostly one that nothing had before.
func (d drawer) op() string {
	if d.chance(3) {
		return one(d, []string{"", "o1", "o2", "o2"})
	}
	return fmt.Sprint("n", len(d.w.steps))
}

// dead is mostly any letter.
func (d drawer) dead() Dead {
	var f Dead
	if d.chance(3) {
		f.Reason = one(d, []string{"unclaimed", "expired", "erased", "addressee_concluded", "wait_withdrawn", "undeliverable", "lost"})
	}
	if d.chance(4) {
		f.Type = one(d, kinds)
	}
	if d.chance(5) {
		f.Source = one(d, sources)
	}
	if d.chance(4) {
		f.Key = one(d, matchKeys)
	}
	for _, at := range []*time.Duration{&f.ReceivedAfter, &f.ReceivedBefore, &f.DeadAfter, &f.DeadBefore} {
		if d.chance(10) {
			*at = d.w.now - one(d, []time.Duration{0, time.Second, 10 * time.Second, time.Minute})
		}
	}
	return f
}

// letters are some that were seen, of that tenant mostly dead, or none but the bound of a filter.
func (d drawer) letters(tenant string) (events []Name, bound int) {
	if d.chance(3) {
		return nil, d.n(1, 4)
	}
	got, err := d.w.look(tenant).DeadLetters(ctx, store.DeadFilter{}, 0, "", false)
	if err != nil {
		d.Fatalf("look at the dead letters of %s: %v", tenant, err)
	}
	return list(d, 4, func() Name {
		if len(got.Letters) == 0 || d.chance(4) {
			return d.name()
		}
		l := one(d, got.Letters)
		return Name{tenant, l.Source, l.ID}
	}), 0
}
