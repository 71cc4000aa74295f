package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// letterChoice is what a change is about: one letter, or all that the filter chooses.
type letterChoice struct {
	letterFilter
	SourceArg string `arg:"" optional:"" name:"source" help:"The event's source; with its id, one letter."`
	IDArg     string `arg:"" optional:"" name:"id" help:"The event's id."`
	All       bool   `help:"Every letter, when no filter chooses."`
	Op        string `help:"Name of this operation: the same command with the same name, after an interruption, does nothing twice." placeholder:"NAME"`
}

// filtered is whether a filter chooses.
func (c *letterChoice) filtered() bool { return c.letterFilter != letterFilter{} }

// selection is the first page of what is chosen.
func (c *letterChoice) selection() (wire.Selection, error) {
	s := wire.Selection{Operator: me(), Op: c.Op}
	if s.Op == "" {
		s.Op = uuid.NewString()
	}
	named := c.SourceArg != "" || c.IDArg != ""
	switch {
	case named && (c.filtered() || c.All):
		return s, rendezvous.InvalidField("id", "names one letter, and there is a filter too; give one of them")
	case named && (c.SourceArg == "" || c.IDArg == ""):
		return s, rendezvous.InvalidField("id", "is missing; give source and id of the event, as deadletter list shows them")
	case named:
		s.Events = []rendezvous.EventID{{Source: c.SourceArg, ID: c.IDArg}}
		return s, nil
	case !c.filtered() && !c.All:
		return s, rendezvous.InvalidField("id", "is missing; give source and id of one letter, or a filter such as --reason unclaimed, or --all")
	}
	f, err := c.filter()
	s.Filter, s.Bound = &f, rendezvous.MaxBatchItems
	return s, err
}

// begin is what a change begins with: the plane, and the first page.
func (c *letterChoice) begin(r *remote) (*client.Client, wire.Selection, error) {
	s, err := c.selection()
	if err != nil {
		return nil, s, err
	}
	rdv, err := r.client()
	return rdv, s, err
}

// each makes a change page by page, each under a name of its own so that any of them may be sent again, and gathers what became of the letters.
func (c *letterChoice) each(ctx context.Context, s wire.Selection, change func(ctx context.Context, s wire.Selection) (wire.LetterResults, error)) (wire.LetterResults, error) {
	all := wire.LetterResults{Results: []wire.LetterResult{}}
	op := s.Op
	for n := 2; ; n++ {
		page, err := change(ctx, s)
		if err != nil {
			if len(all.Results) > 0 {
				hint("%d letters are done; the same command with --op %s goes on", len(all.Results), op)
			}
			return all, err
		}
		all.Results = append(all.Results, page.Results...)
		all.Omitted += page.Omitted
		if !page.More || page.NextCursor == "" {
			return all, nil
		}
		s.Cursor, s.Op = page.NextCursor, fmt.Sprintf("%s/%d", op, n)
	}
}

// tell shows what became of the letters; the command fails when one named letter, or all of many, are not as asked.
func tellLetters(r *remote, done wire.LetterResults, want string) error {
	good := 0
	for _, l := range done.Results {
		if l.Outcome == want {
			good++
		}
	}
	if err := show(r, done, done.Results, func() {
		if len(done.Results) > 1 || good < len(done.Results) {
			t := table{heads: []string{"OUTCOME", "SOURCE", "ID", "WHY"}}
			for _, l := range done.Results {
				if l.Outcome != want {
					t.add(l.Outcome, l.Source, l.ID, letterWhy(l))
				}
			}
			if len(t.rows) > 0 {
				t.print()
			}
		}
		fmt.Printf("%d %s, %d not\n", good, want, len(done.Results)-good)
	}); err != nil {
		return err
	}
	if len(done.Results) == 1 && good == 0 {
		code := rendezvous.CodeConflict
		if done.Results[0].Outcome == "not_found" {
			code = rendezvous.CodeNotFound
		}
		return rendezvous.Errorf(code, "the letter is not %s: %s", want, done.Results[0].Outcome)
	}
	return nil
}

// letterWhy says in words why a letter stays as it is.
func letterWhy(l wire.LetterResult) string {
	switch l.Outcome {
	case "not_dead":
		if l.WorkflowID != "" {
			return fmt.Sprintf("it is %s: record %d of workflow %s", l.State, l.Seq, l.WorkflowID)
		}
		return fmt.Sprintf("it is %s", l.State)
	case "erased":
		return "its payload is gone"
	case "purged":
		return "it is purged, for good"
	case "addressee_concluded":
		return "its run is over; give --to " + wire.Broadcast + ", or --to a run" + current(l.CurrentRun)
	case "expired":
		return "its own expiry is past; give --expires-at"
	case "not_found":
		return "no event of that identity"
	}
	if l.Error != nil {
		return l.Error.Message
	}
	return "-"
}

func current(run string) string {
	if run == "" {
		return ""
	}
	return " (" + run + " is the workflow's now)"
}

type letterRequeueCmd struct {
	remote
	letterChoice
	To        string    `help:"For whom: broadcast drops the addressee, a run id names one; as it was unless said." placeholder:"RUN"`
	ExpiresAt time.Time `help:"A new expiry, an RFC 3339 time; one whose own is past wants it." placeholder:"TIME"`
}

func (c *letterRequeueCmd) Run(ctx context.Context) error {
	rdv, s, err := c.begin(&c.remote)
	if err != nil {
		return err
	}
	done, err := c.each(ctx, s, func(ctx context.Context, s wire.Selection) (wire.LetterResults, error) {
		return rdv.RequeueLetters(ctx, wire.RequeueLetters{Selection: s, To: c.To, ExpiresAt: wire.At(c.ExpiresAt)})
	})
	if err != nil {
		return err
	}
	return tellLetters(&c.remote, done, "requeued")
}

type letterPurgeCmd struct {
	remote
	letterChoice
	Yes bool `short:"y" help:"Do not ask."`
}

func (c *letterPurgeCmd) Run(ctx context.Context) error {
	rdv, s, err := c.begin(&c.remote)
	if err != nil {
		return err
	}
	if !c.Yes {
		what := "The payload and keys of " + c.SourceArg + " " + c.IDArg + " go for ever; its identity stays."
		if s.Filter != nil {
			n, err := rdv.CountLetters(ctx, wire.CountLetters{Filter: *s.Filter})
			if err != nil {
				return err
			}
			what = fmt.Sprintf("The payloads and keys of %d dead letters go for ever; their identities stay.", n.Count)
		}
		if err := confirm(what, "purge"); err != nil {
			return err
		}
	}
	done, err := c.each(ctx, s, func(ctx context.Context, s wire.Selection) (wire.LetterResults, error) {
		return rdv.PurgeLetters(ctx, wire.PurgeLetters{Selection: s})
	})
	if err != nil {
		return err
	}
	return tellLetters(&c.remote, done, "purged")
}
