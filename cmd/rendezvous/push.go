package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

type pushCmd struct {
	Put      pushPutCmd      `cmd:"" help:"Register a webhook that follows a run, or change one."`
	Get      pushGetCmd      `cmd:"" help:"Show a registration: its state, its place, its last failure. No secret is shown."`
	List     pushListCmd     `cmd:"" help:"List a run's registrations."`
	Delete   pushDeleteCmd   `cmd:"" help:"End a registration."`
	Park     pushParkCmd     `cmd:"" help:"Stop a registration until it is unparked."`
	Parked   pushParkedCmd   `cmd:"" help:"List parked registrations: why, since when, and where they stopped."`
	Unpark   pushUnparkCmd   `cmd:"" help:"Have parked registrations go on from where they stopped."`
	Skip     pushSkipCmd     `cmd:"" help:"Take a parked registration past the record it stopped at."`
	Rotate   pushRotateCmd   `cmd:"" help:"Give a registration a new signing key; the older ones end after a grace."`
	Attempts pushAttemptsCmd `cmd:"" help:"Show the attempt log of a registration, newest first: what failed and why."`
	Listen   pushListenCmd   `cmd:"" help:"Receive webhooks on this machine, verify them and print them; or play a receiver that fails."`
}

// pushName are the arguments that name a registration.
type pushName struct {
	RunID string `arg:"" name:"run" help:"The run."`
	ID    string `arg:"" optional:"" name:"id" help:"The registration's id; absent: the one that was put without an id."`
}

func (n pushName) ref() wire.PushRef { return wire.PushRef{RunID: n.RunID, ID: n.ID} }

// pushWhy are the flags of whoever acts on a registration.
type pushWhy struct {
	Reason string `help:"Why."`
	Op     string `help:"Name of this operation: the same command with the same name, after an interruption, does nothing twice." placeholder:"NAME"`
}

type pushPutCmd struct {
	remote
	RunID          string         `arg:"" name:"run" help:"The run to follow."`
	URL            string         `arg:"" optional:"" name:"url" help:"Where to POST."`
	ID             string         `help:"The registration's id in its run; absent: push- and the run's id."`
	Registration   string         `help:"The registration as JSON, as push.put takes it, for what has no flag here: @file, or - for standard input. Flags win." placeholder:"JSON"`
	ReceiverToken  string         `help:"Token to echo in the A2A headers: @file, or the text." placeholder:"SECRET"`
	Scheme         string         `help:"Scheme of the Authorization header, with --credentials." placeholder:"SCHEME"`
	Credentials    string         `help:"What follows the scheme: @file, or the text." placeholder:"SECRET"`
	Username       string         `help:"User of basic authorization, with --password." placeholder:"NAME"`
	Password       string         `help:"Its password: @file, or the text." placeholder:"SECRET"`
	Header         []string       `help:"A header to add, Name=value; may be given again." sep:"none" placeholder:"NAME=VALUE"`
	Key            []string       `help:"A signing key, newest first: @file, or whsec_ or whsk_ text; may be given again." sep:"none" placeholder:"SECRET"`
	Projection     string         `help:"cloudevents, which is the default, or a2a." placeholder:"NAME"`
	Events         []string       `help:"Kinds of records to send, such as run.completed, or * for all; absent: all of runs and waits, none of timers." placeholder:"KIND"`
	IncludePayload *bool          `help:"Send payloads too; absent: with a2a only." negatable:""`
	Timeout        *time.Duration `help:"How long a request may take (1s to 30s); absent: 15s." placeholder:"DURATION"`
	MaxAttempts    int            `help:"Failures in a row after which it is parked (1 to 1000); absent: 64." placeholder:"N"`
	NextSeq        int64          `help:"The record to begin at; absent: the next one." placeholder:"SEQ"`
	IfVersion      int64          `help:"Only if it is at that version." placeholder:"N"`
	Fields         []string       `help:"Change these fields only, such as url,token; all else stays, secrets too. Absent: what is not given is as if it never was." placeholder:"FIELD"`
}

func (c *pushPutCmd) Run(ctx context.Context) error {
	req, err := c.request()
	if err != nil {
		return err
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.PutPush(ctx, req)
	if err != nil {
		return onThisMachine(err)
	}
	return show[wire.PushPut](&c.remote, r, nil, func() {
		word := "replaced"
		if r.Created {
			word = "registered"
		}
		fmt.Printf("%s  run %s  id %s  version %d: %s\n", word, r.RunID, r.ID, r.Version, pushPlace(r.Push))
		if len(r.Signing) == 0 {
			hint("it is not signed; rendezvous push rotate %s %s makes a key and shows it once", r.RunID, r.ID)
		}
	})
}

// onThisMachine adds to a refusal of a receiver on this machine how it is granted.
func onThisMachine(err error) error {
	e := *rendezvous.AsError(err)
	host, _ := e.Details["host"].(string)
	if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return err
	}
	e.Message += fmt.Sprintf("; a plane for development takes it that runs with --push-caller-hosts %s --push-dev-loopback", host)
	return &e
}

func (c *pushPutCmd) request() (wire.PutPush, error) {
	var req wire.PutPush
	text, err := dataOf(c.Registration)
	if err == nil && text != nil {
		if json.Unmarshal(text, &req) != nil {
			err = rendezvous.InvalidField("registration", "is not the JSON of a registration")
		}
	}
	if err != nil {
		return req, err
	}
	req.RunID = c.RunID
	for _, f := range [...]struct {
		to   *string
		flag string
	}{{&req.URL, c.URL}, {&req.ID, c.ID}, {(*string)(&req.Projection), c.Projection}} {
		if f.flag != "" {
			*f.to = f.flag
		}
	}
	for _, f := range [...]struct {
		to   *int64
		flag int64
	}{{&req.NextSeq, c.NextSeq}, {&req.IfVersion, c.IfVersion}} {
		if f.flag != 0 {
			*f.to = f.flag
		}
	}
	if c.MaxAttempts != 0 {
		req.MaxAttempts = c.MaxAttempts
	}
	if c.Timeout != nil {
		req.TimeoutMS = wire.AfterMS(*c.Timeout)
	}
	if c.Events != nil {
		req.Events = c.Events
	}
	if c.Fields != nil {
		req.Fields = c.Fields
	}
	if c.IncludePayload != nil {
		req.IncludePayload = c.IncludePayload
	}
	return req, c.secrets(&req)
}

// secrets reads what is better kept in files.
func (c *pushPutCmd) secrets(req *wire.PutPush) error {
	var failed error
	read := func(flag string) wire.Secret {
		s, err := secretOf(flag)
		if err != nil {
			failed = err
		}
		return s
	}
	if c.ReceiverToken != "" {
		req.Token = read(c.ReceiverToken)
	}
	if c.Scheme != "" || c.Credentials != "" || c.Username != "" || c.Password != "" {
		req.Auth = &wire.PushAuth{Scheme: c.Scheme, Credentials: read(c.Credentials), Username: c.Username, Password: read(c.Password)}
	}
	if c.Header != nil {
		req.Headers = nil
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return rendezvous.InvalidField("header", "has no =; give Name=value")
		}
		req.Headers = append(req.Headers, wire.PushHeader{Name: name, Value: read(value)})
	}
	if c.Key != nil {
		req.Signing = nil
	}
	for _, k := range c.Key {
		req.Signing = append(req.Signing, wire.PushKey{Key: read(k)})
	}
	return failed
}

// secretOf reads a secret from a flag: its text, @file without the line break at its end, or - for standard input.
func secretOf(flag string) (wire.Secret, error) {
	text, err := dataOf(flag)
	return wire.SecretOf(strings.TrimRight(string(text), "\r\n")), err
}

// pushPlace says where a registration stands.
func pushPlace(p wire.Push) string {
	at := fmt.Sprintf("%s at record %d", p.State, p.Cursor.NextSeq)
	if p.State == rendezvous.PushParked {
		at += ": " + string(p.Reason)
	}
	return at
}

type pushGetCmd struct {
	remote
	watched
	pushName
}

func (c *pushGetCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		p, err := rdv.GetPush(ctx, c.ref())
		if err != nil {
			return err
		}
		return show[wire.Push](&c.remote, p, nil, func() { pushFacts(p) })
	})
}

// pushFacts shows a registration in full.
func pushFacts(p wire.Push) {
	t := table{heads: []string{"REGISTRATION", p.ID}}
	t.add("run", p.RunID)
	t.add("workflow", p.WorkflowID)
	t.add("url", dash(p.URL))
	t.add("state", pushPlace(p))
	t.add("version", p.Version)
	if o := p.PushOptionsView; o != nil {
		t.add("projection", o.Projection)
		t.add("events", strings.Join(o.Events, " "))
		t.add("timeout", time.Duration(o.TimeoutMS)*time.Millisecond)
		t.add("attempts", fmt.Sprintf("%d failed in a row, of %d; %d in all", p.Attempts, o.MaxAttempts, p.AttemptNo))
	} else {
		t.add("attempts", fmt.Sprintf("%d failed in a row; %d in all", p.Attempts, p.AttemptNo))
	}
	t.add("next attempt", clockTime(p.NextAttemptAt.Time))
	if p.Auth != nil {
		t.add("auth", strings.TrimSpace(string(p.Auth.Kind)+" "+p.Auth.Scheme))
	}
	t.add("token", map[bool]string{true: "set", false: "-"}[p.TokenSet])
	t.add("headers", dash(strings.Join(p.Headers, " ")))
	for _, k := range p.Signing {
		until := ""
		if !k.ExpiresAt.IsZero() {
			until = ", ends " + clockTime(k.ExpiresAt.Time)
		}
		t.add("key", k.KeyID+" "+k.Algorithm+until)
	}
	t.add("failing since", clockTime(p.FailingSince.Time))
	t.add("parked since", clockTime(p.ParkedAt.Time))
	t.add("error", dash(p.Error))
	t.print()
}

type pushListCmd struct {
	remote
	watched
	RunID string `arg:"" name:"run" help:"The run."`
}

func (c *pushListCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		list, err := rdv.ListPush(ctx, c.RunID)
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Registrations, func() {
			t := table{heads: []string{"ID", "STATE", "NEXT", "ATTEMPTS", "NEXT ATTEMPT", "URL", "ERROR"}}
			for _, p := range list.Registrations {
				t.add(p.ID, p.State, p.Cursor.NextSeq, p.Attempts, clockTime(p.NextAttemptAt.Time), dash(p.URL), dash(shorten(p.Error, 60)))
			}
			t.print()
		})
	})
}

type pushDeleteCmd struct {
	remote
	pushName
	Yes bool `short:"y" help:"Do not ask."`
}

func (c *pushDeleteCmd) Run(ctx context.Context) error {
	return c.sure(c.Yes, "The registration goes with its place in the history and its secrets.", "delete", func(rdv *client.Client) error {
		r, err := rdv.DeletePush(ctx, c.ref())
		if err != nil {
			return err
		}
		return show[wire.PushDeleted](&c.remote, r, nil, func() {
			fmt.Println(r.Outcome)
			if !r.QuietAt.IsZero() {
				fmt.Printf("a request may be in flight until %s\n", clockTime(r.QuietAt.Time))
			}
		})
	})
}

// sure does what cannot be undone, once that is confirmed.
func (r *remote) sure(yes bool, what, word string, do func(rdv *client.Client) error) error {
	rdv, err := r.client()
	if err != nil {
		return err
	}
	if !yes {
		if err := confirm(what, word); err != nil {
			return err
		}
	}
	return do(rdv)
}
