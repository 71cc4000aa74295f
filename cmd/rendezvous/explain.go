package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

type eventExplainCmd struct {
	remote
	watched
	Source string `arg:"" help:"The event's source."`
	ID     string `arg:"" help:"The event's id."`
	RunID  string `name:"run" help:"With --effect: what stands between the event and that wait." placeholder:"RUN" and:"wait"`
	Effect string `help:"With --run: the wait's name." placeholder:"NAME" and:"wait"`
}

func (c *eventExplainCmd) Run(ctx context.Context) error {
	id := rendezvous.EventID{Source: c.Source, ID: c.ID}
	e := explaining{event: id, wait: rendezvous.WaitID{RunID: c.RunID, Effect: c.Effect}, noun: "EVENT", what: c.Source + " " + c.ID}
	if c.RunID == "" && c.Effect == "" {
		e.alone = func(ctx context.Context, rdv *client.Client) (wire.Explanation, error) {
			return rdv.ExplainEvent(ctx, id)
		}
	}
	return e.run(ctx, &c.remote, c.watched)
}

type waitExplainCmd struct {
	remote
	watched
	RunID  string `arg:"" help:"The run that waits."`
	Effect string `arg:"" help:"The wait's name."`
	Source string `help:"With --id: what stands between the wait and that event." placeholder:"SOURCE" and:"event"`
	ID     string `help:"With --source: the event's id." placeholder:"ID" and:"event"`
}

func (c *waitExplainCmd) Run(ctx context.Context) error {
	id := rendezvous.WaitID{RunID: c.RunID, Effect: c.Effect}
	e := explaining{event: rendezvous.EventID{Source: c.Source, ID: c.ID}, wait: id, noun: "WAIT", what: c.Effect + " of run " + c.RunID}
	if c.Source == "" && c.ID == "" {
		e.alone = func(ctx context.Context, rdv *client.Client) (wire.Explanation, error) {
			return rdv.ExplainWait(ctx, id)
		}
	}
	return e.run(ctx, &c.remote, c.watched)
}

// explaining is a question about one side, or about a pair.
type explaining struct {
	alone      func(ctx context.Context, rdv *client.Client) (wire.Explanation, error) // nil: the pair
	event      rendezvous.EventID
	wait       rendezvous.WaitID
	noun, what string // the side asked about
}

func (e explaining) run(ctx context.Context, r *remote, w watched) error {
	rdv, err := r.client()
	if err != nil {
		return err
	}
	ask := e.alone
	if ask == nil {
		ask = func(ctx context.Context, rdv *client.Client) (wire.Explanation, error) {
			return rdv.ExplainPair(ctx, e.event, e.wait)
		}
	}
	return w.watching(ctx, r, func(ctx context.Context) error {
		x, err := ask(ctx, rdv)
		if err != nil {
			return err
		}
		return show[wire.Explanation](r, x, nil, func() {
			if x.Facts.Other != nil {
				printPair(e.event, e.wait, x)
				return
			}
			printExplanation(e.noun, e.what, x)
		})
	})
}

// printPair shows both sides beside one another, what stands between them, and what to do.
func printPair(event rendezvous.EventID, wait rendezvous.WaitID, x wire.Explanation) {
	t := table{heads: []string{"PAIR", "EVENT " + event.Source + " " + event.ID, "WAIT " + wait.Effect + " of run " + wait.RunID}}
	other := x.Facts.Other
	t.add("type", x.Facts.Type, other.Type)
	t.add("keys", orNone(keyList(x.Facts.Keys)), orNone(keyList(other.Keys)))
	if !other.Deadline.IsZero() {
		t.add("in time", clockTime(x.Facts.ReceivedAt.Time), "before "+clockTime(other.Deadline.Time))
	}
	if other.From != "" {
		t.add("source", event.Source, "only "+other.From)
	}
	if x.Facts.Target != "" {
		t.add("for run", x.Facts.Target, wait.RunID)
	}
	t.print()
	fmt.Println()
	said := verdictText(x)
	t = table{heads: []string{"THE EVENT", fmt.Sprintf("%s: %s", x.Verdict, said.why)}}
	for _, r := range x.Reasons {
		t.add("because", reasonText(r))
	}
	for _, h := range x.Hints {
		t.add("hint", hintText(h))
	}
	t.add("what to do", pairAdvice(wait, x))
	t.print()
}

// pairAdvice follows the first reason: those of the two sides come before those of their state.
func pairAdvice(wait rendezvous.WaitID, x wire.Explanation) string {
	if len(x.Reasons) == 0 {
		return "nothing"
	}
	switch first := x.Reasons[0]; first.Code {
	case rendezvous.PairEventConsumed, rendezvous.PairEventClaimed:
		if first.Wait != nil && *first.Wait == wait {
			return "nothing: these two have met"
		}
	case rendezvous.PairOtherType, rendezvous.PairNoSharedKey:
		return "what was sent stays as it is: " + againAdvice
	case rendezvous.PairOtherSource:
		return "the wait takes one sender only; have the run register a wait for this one, or for any"
	case rendezvous.PairOtherAddressee:
		return "it was sent to another run; send it again under a new id, to this run or to none"
	case rendezvous.PairArrivedLate:
		return lateAdvice
	case rendezvous.PairOlderEventFirst, rendezvous.PairOlderWaitFirst, rendezvous.PairOfferDue:
		return "nothing; it follows by itself"
	}
	return "nothing: this event and this wait cannot meet any more"
}

// againAdvice mends a wrong key or type.
const againAdvice = "send it again under a new id with what the wait wants, or have the run register a wait for what came"

// lateAdvice is for what came behind a deadline.
const lateAdvice = "the event is for others now; have the run register another wait, with a later deadline or none"

// printExplanation shows the verdict, why, and what to do.
func printExplanation(noun, what string, x wire.Explanation) {
	t := table{heads: []string{noun, what}}
	said := verdictText(x)
	t.add("verdict", fmt.Sprintf("%s: %s", x.Verdict, said.why))
	if x.Facts.Type != "" {
		t.add("type", x.Facts.Type)
		t.add("keys", orNone(keyList(x.Facts.Keys)))
	}
	if x.Facts.From != "" {
		t.add("only from", x.Facts.From)
	}
	if x.Facts.Target != "" {
		t.add("for run", x.Facts.Target)
	}
	if !x.Facts.Deadline.IsZero() {
		t.add("deadline", clockTime(x.Facts.Deadline.Time))
	}
	if !x.Facts.Since.IsZero() {
		t.add("since", clockTime(x.Facts.Since.Time))
	}
	if !x.Facts.At.IsZero() {
		t.add("at", clockTime(x.Facts.At.Time))
	}
	if x.Facts.Erased {
		t.add("erased", "yes")
	}
	for _, r := range x.Reasons {
		t.add("because", reasonText(r))
	}
	for _, h := range x.Hints {
		t.add("hint", hintText(h))
	}
	t.add("what to do", said.do)
	t.print()
	printNearMisses(x)
}

func printNearMisses(x wire.Explanation) {
	if len(x.NearMisses) > 0 {
		fmt.Println("\nWhat comes nearest:")
		t := table{heads: []string{"NEAR MISS", "TYPE", "KEYS", "WHY NOT", "HINT"}}
		for _, m := range x.NearMisses {
			t.add(sideText(m.Event, m.Wait), m.Type, orNone(keyList(m.Keys)), eachText(m.Reasons, reasonText), orNone(eachText(m.Hints, hintText)))
		}
		t.print()
	}
	if x.Partial {
		fmt.Println("The search was cut; there may be nearer ones.")
	}
}

// telling is a verdict in words.
type telling struct{ why, do string }

func verdictText(x wire.Explanation) telling {
	f := x.Facts
	switch x.Verdict {
	case rendezvous.VerdictUnknown:
		return telling{"the plane never took in such an event for this tenant", "look at its source and id, at the tenant, and among rejected messages; then send it again"}
	case rendezvous.VerdictDelivered:
		return telling{fmt.Sprintf("it answered wait %s, record %d of workflow %s, %s after it came", waitText(f.Wait), f.Seq, f.WorkflowID, milliseconds(f.WaitedMS)), "nothing"}
	case rendezvous.VerdictAnswered:
		return telling{fmt.Sprintf("event %s answered it, record %d of workflow %s", eventText(f.Event), f.Seq, f.WorkflowID), "nothing"}
	case rendezvous.VerdictTimedOut:
		return telling{fmt.Sprintf("no event that came before its deadline met it, record %d of workflow %s", f.Seq, f.WorkflowID), "nothing; the run may register another wait"}
	case rendezvous.VerdictWithdrawn:
		return telling{fmt.Sprintf("it ended unanswered, record %d of workflow %s", f.Seq, f.WorkflowID), "nothing; the run may register another wait"}
	case rendezvous.VerdictOverdue:
		return overdueText(f)
	case rendezvous.VerdictHeld:
		return heldText(f)
	case rendezvous.VerdictDead:
		return telling{strings.TrimSpace(fmt.Sprintf("a dead letter: %s %s", f.Reason, f.Detail)), deadAdvice(f)}
	case rendezvous.VerdictExpired:
		return telling{"its own expiry is past, so it meets nobody; the next sweep retires it", "send it again with a later expirytime, under a new id"}
	}
	return unmetText(x)
}

// unmetText is for those verdicts under which nothing is closed.
func unmetText(x wire.Explanation) telling {
	f := x.Facts
	switch x.Verdict {
	case rendezvous.VerdictKept:
		return telling{fmt.Sprintf("it is for run %s alone, which is %s and has no wait that it meets", f.Run.RunID, f.Run.State), keptAdvice(x)}
	case rendezvous.VerdictNoKeys:
		return telling{"it has no key and no addressee, so nothing can ever meet it", "send it again under a new id with a key (subject, or rdvkeys), or for a run (rdvrun)"}
	case rendezvous.VerdictBehind:
		if !f.ReceivedAt.IsZero() {
			return telling{fmt.Sprintf("older event %s goes first at wait %s", eventText(f.Event), waitText(f.Wait)), "nothing; if it stays so, look whether notices are offered (the unmet pass)"}
		}
		return telling{fmt.Sprintf("older wait %s goes first on event %s", waitText(f.Wait), eventText(f.Event)), "nothing; the next event on its keys is its own"}
	case rendezvous.VerdictOfferDue:
		return telling{"nothing stands in the way of " + sideText(f.Event, f.Wait) + ": the offer is on its way", "nothing; if it stays so, look at the delivery-worker and the sweeper"}
	case rendezvous.VerdictUnregistered:
		return telling{fmt.Sprintf("run %s (%s) never registered a wait of that name", f.Run.RunID, f.Run.State), unregisteredAdvice(f)}
	case rendezvous.VerdictEnded:
		if f.Run.State == rendezvous.RunStateOpen {
			return telling{fmt.Sprintf("its run concluded with the wait open (%s), and was reopened since", f.Run.Outcome), "nothing; the run registers it again as its next attempt"}
		}
		return telling{fmt.Sprintf("its run concluded with the wait open (%s); %d events were let go, %d became dead letters", f.Run.Outcome, len(f.Released), len(f.Dead)), "nothing; the run is over"}
	case rendezvous.VerdictNoEvent:
		return telling{"no live event meets it", nearAdvice(x)}
	}
	return telling{"no open wait meets it", nearAdvice(x)}
}

func heldText(f wire.Facts) telling {
	why := "held: claimed for " + sideText(f.Event, f.Wait) + ", the answer is not recorded yet; "
	switch h := f.Hold; h.State {
	case rendezvous.HoldLeased:
		return telling{why + fmt.Sprintf("%s drives the run for another %s", h.Owner, milliseconds(h.RemainingMS)), "nothing; it is recorded when the driver collects it or its lease ends"}
	case rendezvous.HoldQuarantined:
		return telling{why + fmt.Sprintf("%d attempts failed, and nobody tries it any more: %s", h.Attempts, h.LastError), "mend the cause, then have it tried again (wait retry)"}
	case rendezvous.HoldBackoff:
		return telling{why + strings.TrimSpace(fmt.Sprintf("it is tried again at %s, after %d failed attempts %s", clockTime(h.NextAttemptAt.Time), h.Attempts, h.LastError)), "nothing"}
	}
	return telling{why + "the next parked pass records it", "nothing; if it stays so, look at the sweeper"}
}

func overdueText(f wire.Facts) telling {
	why := "its deadline is over, no event that came in time is left, and the time-out is not recorded yet; "
	switch h := f.Hold; {
	case h.State == rendezvous.HoldLeased:
		return telling{why + fmt.Sprintf("%s drives the run for another %s", h.Owner, milliseconds(h.RemainingMS)), "nothing; it is recorded when the driver gives the run up or its lease ends"}
	case h.Attempts > 0:
		return telling{why + fmt.Sprintf("it is tried again at %s, after %d failed attempts: %s", clockTime(h.NextAttemptAt.Time), h.Attempts, h.LastError), "nothing; if it stays so, mend the cause"}
	}
	return telling{why + "the timer-worker does that next", "nothing; if it stays so, look at the timer-worker (shard list)"}
}

func deadAdvice(f wire.Facts) string {
	if f.Purged {
		return "nothing: it is purged for good; send it again under a new id"
	}
	if f.Erased {
		return "nothing: its payload is erased; send it again under a new id"
	}
	return "where its key or type is wrong (see what comes nearest): " + againAdvice + ", and then deadletter purge or requeue; where its wait came too late: deadletter requeue"
}

func keptAdvice(x wire.Explanation) string {
	if len(x.NearMisses) > 0 {
		return "compare with what comes nearest, below: the run may register a wait of its type with one of its keys or without any; nobody's in time is a dead letter"
	}
	return "have the run register a wait of its type; nobody's in time, or at the run's conclusion, it becomes a dead letter"
}

func unregisteredAdvice(f wire.Facts) string {
	if len(f.Similar) > 0 {
		return "did you mean " + strings.Join(f.Similar, ", ") + "?"
	}
	if f.Run.State == rendezvous.RunStateUnknown {
		return "look at the run's id and at the tenant"
	}
	return "look at the wait's name; wait list --run " + f.Run.RunID + " shows those of the run"
}

func nearAdvice(x wire.Explanation) string {
	for _, m := range x.NearMisses {
		for _, h := range m.Hints {
			return "make one spelling of the two: " + hintText(h)
		}
	}
	if len(x.NearMisses) > 0 {
		return "compare with what comes nearest, below; where the event is wrong: " + againAdvice + "; else wait"
	}
	return "wait for the other side; nothing comes near"
}

func reasonText(r wire.Reason) string {
	text := string(r.Code)
	if r.Event != nil || r.Wait != nil {
		text += " (" + sideText(r.Event, r.Wait) + ")"
	}
	if r.Code == rendezvous.PairArrivedLate {
		text += " (the deadline was " + clockTime(r.Since.Time) + ")"
	}
	for _, more := range [...]string{string(r.Dead), string(r.Closed), string(r.Outcome)} {
		if more != "" {
			text += " " + more
		}
	}
	return text
}

func hintText(h wire.Hint) string {
	return fmt.Sprintf("%s: event %q, wait %q", h.Kind, h.Event, h.Wait)
}

func sideText(e *rendezvous.EventID, w *rendezvous.WaitID) string {
	if w != nil {
		return "wait " + waitText(w)
	}
	return "event " + eventText(e)
}

func waitText(w *rendezvous.WaitID) string {
	if w == nil {
		return "-"
	}
	return w.Effect + " of run " + w.RunID
}

func eventText(e *rendezvous.EventID) string { return heldEvent(e) }

func eachText[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = text(x)
	}
	return strings.Join(parts, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
