package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

type deadletterCmd struct {
	List    letterListCmd    `cmd:"" help:"List dead letters, newest first: their keys show why nobody took them."`
	Count   letterCountCmd   `cmd:"" help:"Count dead letters, all and by reason."`
	Requeue letterRequeueCmd `cmd:"" help:"Make dead letters live again, at their old places in line."`
	Purge   letterPurgeCmd   `cmd:"" help:"Drop payloads and keys of dead letters for ever; their identities stay."`
}

// letterFilter are the flags that choose dead letters.
type letterFilter struct {
	Reason     string    `help:"Only these: unclaimed, expired, erased, addressee_concluded, wait_withdrawn, undeliverable." placeholder:"REASON"`
	Type       string    `help:"Only events of this type."`
	Source     string    `help:"Only events of this source."`
	Key        string    `help:"Only events with this key, namespace=value." placeholder:"NS=VALUE"`
	DeadAfter  time.Time `help:"Only those that died then or later, an RFC 3339 time, such as 2026-01-31T12:00:00Z." placeholder:"TIME"`
	DeadBefore time.Time `help:"Only those that died then or earlier." placeholder:"TIME"`
}

func (f *letterFilter) filter() (wire.LetterFilter, error) {
	w := wire.LetterFilter{
		Reason: rendezvous.DeadReason(f.Reason), Type: f.Type, Source: f.Source, DeadAfter: wire.At(f.DeadAfter), DeadBefore: wire.At(f.DeadBefore),
	}
	if f.Key == "" {
		return w, nil
	}
	keys, err := keysOf([]string{f.Key})
	if err == nil {
		w.Key = &keys[0]
	}
	return w, err
}

// letterLook are the flags of a look at those that a filter chooses.
type letterLook struct {
	letterFilter
	watched
}

func (l *letterLook) look(ctx context.Context, r *remote, once func(ctx context.Context, rdv *client.Client, f wire.LetterFilter) error) error {
	rdv, err := r.client()
	if err != nil {
		return err
	}
	f, err := l.filter()
	if err != nil {
		return err
	}
	return l.watching(ctx, r, func(ctx context.Context) error { return once(ctx, rdv, f) })
}

type letterListCmd struct {
	remote
	letterLook
	Data   bool   `help:"Show payloads too."`
	Limit  int    `help:"At most so many; 0: a page of 100."`
	Cursor string `help:"Go on behind an earlier page."`
}

func (c *letterListCmd) Run(ctx context.Context) error {
	return c.look(ctx, &c.remote, func(ctx context.Context, rdv *client.Client, f wire.LetterFilter) error {
		list, err := rdv.ListLetters(ctx, wire.ListLetters{Filter: f, Limit: c.Limit, Cursor: c.Cursor, IncludeData: c.Data})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Letters, func() {
			t := table{heads: []string{"DEAD SINCE", "REASON", "TYPE", "SOURCE", "ID", "KEYS", "FOR RUN", "DETAIL"}}
			if c.Data {
				t.heads = append(t.heads, "DATA")
			}
			for _, l := range list.Letters {
				cells := []any{clockTime(l.DeadAt.Time), l.Reason, l.Type, l.Source, l.ID, keyList(l.Keys), dash(l.Target), dash(shorten(l.Detail, 40))}
				if c.Data {
					cells = append(cells, dash(shorten(payloadText(l.Payload), 60)))
				}
				t.add(cells...)
			}
			t.print()
			more(list.NextCursor)
		})
	})
}

type letterCountCmd struct {
	remote
	letterLook
	Cap int `help:"Count no further than this; 0: all."`
}

func (c *letterCountCmd) Run(ctx context.Context) error {
	return c.look(ctx, &c.remote, func(ctx context.Context, rdv *client.Client, f wire.LetterFilter) error {
		n, err := rdv.CountLetters(ctx, wire.CountLetters{Filter: f, Cap: c.Cap, ByReason: true})
		if err != nil {
			return err
		}
		return show[wire.LetterCount](&c.remote, n, nil, func() {
			t := table{heads: []string{"REASON", "LETTERS"}}
			for _, reason := range slices.Sorted(maps.Keys(n.ByReason)) {
				t.add(reason, n.ByReason[reason])
			}
			all := fmt.Sprint(n.Count)
			if n.Capped {
				all += " or more"
			}
			t.add("all", all)
			t.print()
		})
	})
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
