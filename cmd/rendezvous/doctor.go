package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// doctorCmd looks at what a plane stands on: what it is told of, it checks.
type doctorCmd struct {
	remote
	Store string    `help:"Check this store too: sqlite:DIR or postgres://…" placeholder:"URL"`
	NATS  node.NATS `embed:""` // with a URL or a context it is checked too
	Limit int       `name:"event-limit" help:"The plane's largest payload of an event, in bytes, which NATS is to carry (at most 1048576)." default:"1048576"`
}

// finding is one line of the doctor's.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *doctorCmd) Run(ctx context.Context) error {
	found := []finding{c.api(ctx)}
	var skipped [][]any // rows of the table
	if c.Store != "" {
		found = append(found, c.checkStore(ctx))
	} else {
		skipped = append(skipped, []any{"store", "skipped", "check it with --store sqlite:DIR (also in use) or --store postgres://…"})
	}
	if c.NATS.URL != "" || c.NATS.Context != "" {
		found = append(found, c.checkNATS(ctx))
	} else {
		skipped = append(skipped, []any{"NATS", "skipped", "check it with --nats URL (up prints it) or --nats-context NAME"})
	}
	bad := 0
	t := table{heads: []string{"CHECK", "", "DETAIL"}}
	for _, f := range found {
		word := "ok"
		if !f.OK {
			word = "BAD"
			bad++
		}
		t.add(f.What, word, f.Detail)
	}
	for _, row := range skipped {
		t.add(row...)
	}
	if err := show(&c.remote, found, found, t.print); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d checks failed", bad, len(found))
	}
	return nil
}

func failed(what string, err error) finding {
	return finding{What: what, Detail: rendezvous.AsError(err).Error()}
}

func (c *doctorCmd) api(ctx context.Context) finding {
	const what = "API"
	rdv, err := c.client()
	if err != nil {
		return failed(what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	i, err := rdv.Info(ctx)
	if err != nil {
		return failed(what, err)
	}
	check, err := rdv.Check(ctx)
	if err != nil {
		return failed(what, err)
	}
	detail := fmt.Sprintf("version %s on a %s store, %s", i.Version, i.Store, check.Verdict)
	for _, r := range check.Reasons {
		detail += "; " + r
	}
	if skew := time.Since(i.Now.Time).Abs(); skew > 5*time.Second {
		detail += fmt.Sprintf("; the store's clock is %s off this machine's", skew.Round(time.Second))
	}
	return finding{What: what, OK: check.Verdict != "failing", Detail: detail} // degraded is for system check to judge: all that is asked here works
}

func (c *doctorCmd) checkStore(ctx context.Context) finding {
	const what = "store"
	if open.Kind(c.Store) == "sqlite" {
		return c.checkEmbedded(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := open.Open(ctx, c.Store, open.Options{Clock: clock.System})
	if err != nil {
		return failed(what, err)
	}
	defer s.Close()
	start := time.Now()
	if err := s.Ping(ctx); err != nil {
		return failed(what, err)
	}
	return finding{What: what, OK: true, Detail: fmt.Sprintf("%s answers in %s, its schema is this build's", open.Kind(c.Store), time.Since(start).Round(time.Microsecond))}
}

// checkEmbedded reads an embedded store through, which may be in use and is not opened.
func (c *doctorCmd) checkEmbedded(ctx context.Context) finding {
	const what = "store"
	faults, err := open.Check(ctx, c.Store)
	switch {
	case err != nil:
		return failed(what, err)
	case len(faults) > 0:
		return finding{What: what, Detail: "sqlite is damaged, restore a backup: " + strings.Join(faults, "; ")}
	}
	return finding{What: what, OK: true, Detail: "sqlite is sound, read from end to end"}
}

func (c *doctorCmd) checkNATS(ctx context.Context) finding {
	const what = "NATS"
	conn, err := messaging.Connect(c.NATS.Messaging("rendezvous doctor", c.Limit), messaging.Deps{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.System})
	if err != nil {
		return failed(what, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if !conn.Connected() && !comes(ctx, conn) {
		return finding{What: what, Detail: "not connected: " + whyNot(conn.PublishConn())}
	}
	missing, err := missingStreams(ctx, conn)
	switch {
	case err != nil:
		return finding{What: what, Detail: "JetStream does not say which streams there are: " + err.Error()}
	case len(missing) > 0:
		return finding{What: what, Detail: fmt.Sprintf("streams not found: %v; workers make them when they start; where they run, their log says why not", missing)}
	}
	return finding{What: what, OK: true, Detail: fmt.Sprintf("server %s, all streams are there", conn.PublishConn().ConnectedServerVersion())}
}

// comes gives a connection that does not stand a second chance: the first refusal is told only when it is met again.
func comes(ctx context.Context, conn *messaging.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status := conn.PublishConn().StatusChanged(nats.CONNECTED)
	defer conn.PublishConn().RemoveStatusListener(status)
	select {
	case <-status:
	case <-ctx.Done():
	}
	return conn.Connected()
}

// whyNot is what the server said when it refused us.
func whyNot(nc *nats.Conn) string {
	if err := nc.LastError(); err != nil {
		return "the server refuses it: " + err.Error()
	}
	return "no server answers at that URL"
}

// missingStreams are the plane's streams that are not there. An error is about something else: permissions, JetStream that is off, a server too busy.
func missingStreams(ctx context.Context, conn *messaging.Conn) ([]string, error) {
	names := conn.Names()
	var missing []string
	for _, stream := range [...]string{names.Inbox(), names.Match(), names.Resume(), names.Rejected(), names.Advisory()} {
		switch _, err := conn.JetStream().Stream(ctx, stream); {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, stream)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", stream, err)
		}
	}
	return missing, nil
}
