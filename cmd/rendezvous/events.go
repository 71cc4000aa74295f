package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/wire"
)

type eventCmd struct {
	Put     eventPutCmd     `cmd:"" help:"Send one event, or every event of a JSONL file."`
	Get     eventGetCmd     `cmd:"" help:"Show where an event is."`
	Explain eventExplainCmd `cmd:"" help:"Say why an event did not meet a wait, and what to do."`
	Erase   eventEraseCmd   `cmd:"" help:"Erase an event's payload for ever; its identity stays."`
}

// eventPutCmd sends events by the request door: the answer is the durable acknowledgement.
type eventPutCmd struct {
	remote
	File    string   `help:"A file of CloudEvents in JSON, one a line (- is standard input), instead of one event by flags." placeholder:"PATH" xor:"what"`
	Type    string   `help:"The event's type." xor:"what"`
	Source  string   `help:"The event's source." default:"urn:rendezvous-cli"`
	ID      string   `help:"The event's id, unique in its source; absent: a new one."`
	Key     []string `help:"A correlation key, namespace=value; repeatable." placeholder:"NS=VALUE" sep:"none"`
	Subject string   `help:"The subject, which is the key subject=…"`
	Data    string   `help:"The payload: JSON, @file, or - for standard input."`
	RunID   string   `name:"run" help:"The one run the event is for." placeholder:"RUN"`
	Expires string   `help:"How long it may wait for a waiter (such as 24h), or an RFC 3339 time."`
}

func (c *eventPutCmd) Run(ctx context.Context) error {
	if c.File != "" {
		return c.feed(ctx)
	}
	raw, err := c.event()
	if err != nil {
		return err
	}
	if len(c.Key) == 0 && c.Subject == "" && c.RunID == "" {
		hint("no key and no run: no wait can meet this event; give it --key NS=VALUE, --subject or --run RUN")
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	results, err := rdv.PutEncoded(ctx, []json.RawMessage{raw})
	if err != nil {
		return err
	}
	r := results[0]
	if err := show(&c.remote, wire.PutResults{Results: results}, results, func() { fmt.Printf("%s  %s %s%s\n", r.Outcome, r.Source, r.ID, stateOf(r)) }); err != nil {
		return err
	}
	return r.Error.Domain()
}

func stateOf(r wire.PutResult) string {
	if r.State != "" {
		return "  (" + string(r.State) + ")"
	}
	return ""
}

func (c *eventPutCmd) event() (json.RawMessage, error) {
	keys, err := keysOf(c.Key)
	if err != nil {
		return nil, err
	}
	if c.Subject != "" {
		keys = append([]rendezvous.Key{{Namespace: "subject", Value: c.Subject}}, keys...)
	}
	if c.Type == "" {
		return nil, rendezvous.InvalidField("type", "is empty; give --type, or --file")
	}
	e := rendezvous.Event{EventID: rendezvous.EventID{Source: c.Source, ID: cmp.Or(c.ID, client.NewID())}, Type: c.Type, Keys: keys}
	if e.Payload, err = dataOf(c.Data); err != nil {
		return nil, err
	}
	if e.Payload != nil {
		e.ContentType = "application/json"
		if !json.Valid(e.Payload) {
			return nil, rendezvous.InvalidField("data", "is not JSON")
		}
	}
	if c.Expires != "" {
		if e.ExpiresAt, err = expiry(c.Expires); err != nil {
			return nil, err
		}
	}
	return cloudevents.Encode(e, c.RunID)
}

func expiry(text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(d), nil
	}
	t, err := rendezvous.ParseInstant("expires", text)
	if err != nil {
		return t, rendezvous.InvalidField("expires", "%q is neither a duration such as 24h nor an RFC 3339 time", text)
	}
	return t, nil
}

// feed sends every line of a file in batches, with a progress bar where somebody looks.
func (c *eventPutCmd) feed(ctx context.Context) error {
	in := os.Stdin
	size := int64(-1)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return rendezvous.InvalidField("file", "cannot be read: %v", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	bar := progressbar.NewOptions64(size, progressbar.OptionSetDescription("events"), progressbar.OptionShowBytes(true), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetVisibility(terminal(os.Stderr)))
	f := feeder{send: func(batch []json.RawMessage) ([]wire.PutResult, error) { return rdv.PutEncoded(ctx, batch) }, counts: map[string]int{}}
	if err := f.lines(io.TeeReader(in, bar)); err != nil {
		return err
	}
	_ = bar.Finish()
	summary := map[string]any{"events": f.n, "outcomes": f.counts}
	if err := show(&c.remote, summary, []any{summary}, func() {
		fmt.Printf("%d events:", f.n)
		for _, outcome := range [...]string{wire.Accepted, wire.Duplicate, wire.Conflict, wire.Rejected} {
			if f.counts[outcome] > 0 {
				fmt.Printf("  %d %s", f.counts[outcome], outcome)
			}
		}
		fmt.Println()
	}); err != nil {
		return err
	}
	return f.first
}

// feeder gathers lines into batches and counts what became of them.
type feeder struct {
	send   func(batch []json.RawMessage) ([]wire.PutResult, error)
	batch  []json.RawMessage
	bytes  int
	n      int
	counts map[string]int
	first  error // the first event that was refused
}

// Bounds of a batch: well under what any door takes.
const (
	feedEvents = 200
	feedBytes  = 4 << 20
)

func (f *feeder) lines(in io.Reader) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), 4<<20)
	for scan.Scan() {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return rendezvous.InvalidField("file", "event %d is not JSON; the events before it are sent", f.n+len(f.batch)+1)
		}
		if f.bytes+len(line) > feedBytes || len(f.batch) == feedEvents {
			if err := f.flush(); err != nil {
				return err
			}
		}
		f.batch, f.bytes = append(f.batch, bytes.Clone(line)), f.bytes+len(line)
	}
	if err := scan.Err(); err != nil {
		return rendezvous.InvalidField("file", "cannot be read to its end: %v", err)
	}
	return f.flush()
}

func (f *feeder) flush() error {
	if len(f.batch) == 0 {
		return nil
	}
	results, err := f.send(f.batch)
	if err != nil {
		return err
	}
	for i, r := range results {
		f.counts[r.Outcome]++
		if r.Error != nil {
			fmt.Fprintf(os.Stderr, "event %d (%s %s): %s\n", f.n+i+1, r.Source, r.ID, r.Error.Message)
			if f.first == nil {
				f.first = r.Error.Domain()
			}
		}
	}
	f.n += len(f.batch)
	f.batch, f.bytes = nil, 0
	return nil
}

type eventGetCmd struct {
	remote
	Source string `arg:"" help:"The event's source."`
	ID     string `arg:"" help:"The event's id."`
	Data   bool   `help:"Show the payload too, while the buffer holds it."`
}

func (c *eventGetCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	e, err := rdv.GetEvent(ctx, rendezvous.EventID{Source: c.Source, ID: c.ID}, c.Data)
	if err != nil {
		return err
	}
	return show[wire.Event](&c.remote, e, nil, func() { describeEvent(e) })
}

func describeEvent(e wire.Event) {
	t := table{heads: []string{"EVENT", e.Source + " " + e.ID}}
	t.add("type", e.Type)
	t.add("state", e.State)
	t.add("keys", keyList(e.Keys))
	t.add("received", clockTime(e.ReceivedAt.Time))
	switch e.State {
	case rendezvous.EventConsumed:
		t.add("answered", fmt.Sprintf("wait %s of run %s, record %d of workflow %s", e.Effect, e.RunID, e.Seq, e.WorkflowID))
	case rendezvous.EventClaimed:
		t.add("claimed", fmt.Sprintf("for wait %s of run %s since %s", e.Effect, e.RunID, clockTime(e.ClaimedAt.Time)))
	case rendezvous.EventDead:
		t.add("dead", fmt.Sprintf("%s %s", e.Reason, e.Detail))
	case rendezvous.EventLive:
		t.add("waiting", "nothing it meets waits for it yet")
	}
	if e.Target != "" {
		t.add("for run", e.Target)
	}
	if e.Erased {
		t.add("erased", "yes")
	}
	if e.Payload != nil {
		t.add("data", payloadText(e.Payload))
	}
	t.print()
}

type eventEraseCmd struct {
	remote
	Source string `arg:"" help:"The event's source."`
	ID     string `arg:"" help:"The event's id."`
	Yes    bool   `short:"y" help:"Do not ask."`
}

func (c *eventEraseCmd) Run(ctx context.Context) error {
	if !c.Yes {
		if err := confirm("The payload of "+c.Source+" "+c.ID+" goes for ever; its identity stays.", "erase"); err != nil {
			return err
		}
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.EraseEvent(ctx, rendezvous.EventID{Source: c.Source, ID: c.ID}, me())
	if err != nil {
		return err
	}
	return show[wire.Erased](&c.remote, r, nil, func() {
		switch {
		case !r.Existed:
			fmt.Println("unknown: nothing to erase")
		case r.Journaled != nil:
			fmt.Printf("erased (was %s); the answer stays in record %d of workflow %s\n", r.Was, r.Journaled.Seq, r.Journaled.WorkflowID)
		default:
			fmt.Printf("erased (was %s)\n", r.Was)
		}
	})
}

func readAll(in io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, rendezvous.MaxPayload+1))
	if err == nil && len(b) > rendezvous.MaxPayload {
		return nil, rendezvous.OverLimit("data", rendezvous.MaxPayload, len(b))
	}
	return bytes.TrimSuffix(b, []byte("\n")), err
}
