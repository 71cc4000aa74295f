package push

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/outcome"
	"github.com/rendezvous-events/rendezvous/push/project"
	"github.com/rendezvous-events/rendezvous/push/request"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
)

// send makes one attempt at a message. nil: it was accepted, and next is the cursor behind it.
func (t *turn) send(rec rendezvous.Record, m project.Message, traced rendezvous.Trace, next rendezvous.Cursor) *ending {
	t.room()
	if t.draining() || t.ctx.Err() != nil {
		return t.stopped()
	}
	if !t.leases.ensure(t.ctx, t.row.Token, t.reg.Timeout+leaseMargin) {
		return t.stopped()
	}
	begun := t.deps.Clock.Now()
	ctx, span := t.attemptSpan(m, traced)
	a := t.beside(func() transport.Attempt { return t.post(ctx, m, traced) })
	a.Phases.Queued = begun.Sub(t.ready)
	done := t.deps.Clock.Now()
	t.ready = done
	entry := t.entry(rec, m, a)
	if entry.Class == rendezvous.ClassAccepted {
		t.endSpan(span, entry)
		t.sent(entry, a)
		t.metrics.lag(t.ctx, t.anchor.at(done).Sub(rec.RecordedAt))
		recovered := t.state.Attempts > 0
		t.accepted(next, entry)
		t.counts.add(Report{Attempts: 1, Accepted: 1})
		t.tell(entry, "advance", "", recovered)
		return nil
	}
	t.counts.add(Report{Attempts: 1})
	end := t.failed(entry, t.result(entry, a, t.anchor.at(done)))
	t.endSpan(span, entry)
	t.sent(entry, a)
	return end
}

// post makes the request.
func (t *turn) post(ctx context.Context, m project.Message, traced rendezvous.Trace) transport.Attempt {
	begun := t.deps.Clock.Now()
	in := request.Input{Message: m, Registration: t.reg, Attempts: t.state.Attempts, At: t.anchor.at(begun), Version: t.cfg.Version}
	if t.withTrace() {
		in.Trace = traced
	}
	key := oauth.Key{Tenant: t.row.Tenant, Run: t.row.RunID, ID: t.row.ID}
	var fault *transport.Error
	if t.reg.Auth.Kind == rendezvous.AuthOAuth2 {
		if in.Bearer, fault = t.deps.Tokens.Bearer(ctx, key, t.reg.Auth); fault != nil {
			return transport.Attempt{Started: begun, Err: fault}
		}
	}
	headers, fault := request.Headers(in)
	if fault != nil {
		return transport.Attempt{Started: begun, Err: fault}
	}
	a := t.deps.Poster.Do(ctx, transport.Request{
		Namespace: t.row.Namespace, URL: t.reg.URL, Headers: headers, Body: m.Body, Timeout: t.reg.Timeout, TLS: t.reg.TLS,
	})
	if t.reg.Auth.Kind == rendezvous.AuthOAuth2 && a.Err == nil {
		t.deps.Tokens.Heard(key, a.Status)
	}
	return a
}

// entry is an attempt as the log has it: of a target that was refused nothing that it answered, of callers no address.
func (t *turn) entry(rec rendezvous.Record, m project.Message, a transport.Attempt) rendezvous.PushAttempt {
	e := rendezvous.PushAttempt{
		Seq: rec.Seq, Index: m.Index, At: t.anchor.at(a.Started), Phases: a.Phases, Unknown: a.Unknown(), Status: a.Status, Worker: t.cfg.Owner,
	}
	if t.row.Namespace == rendezvous.PushOperator && a.Address.IsValid() {
		e.Address = a.Address.String()
	}
	if a.Err != nil {
		e.Class, e.Code, e.Error, e.Status = a.Err.Class, a.Err.Code, a.Err.Text, 0
		return e
	}
	e.Class = outcome.OfStatus(a.Status)
	if e.Class != rendezvous.ClassAccepted {
		e.Error = "the receiver answered " + strconv.Itoa(a.Status)
	}
	if t.cfg.LogBody > 0 {
		e.Response = transport.Text(a.Body, t.cfg.LogBody)
	}
	return e
}

// result is what the contract's tables judge.
func (t *turn) result(e rendezvous.PushAttempt, a transport.Attempt, at time.Time) outcome.Result {
	r := outcome.Result{Class: e.Class, At: at}
	switch {
	case a.Err != nil:
		r.Park = a.Err.Park
	case e.Class != rendezvous.ClassGone:
		r.Advice = outcome.ReadAdvice(a.Header, at, t.cfg.AdviceCap)
	}
	return r
}

// failed notes an attempt that was no acceptance and answers how the turn ends. What is logged is what is stored.
func (t *turn) failed(e rendezvous.PushAttempt, r outcome.Result) *ending {
	if r.Advice.Capped {
		e.AdviceCapped = true
		t.metrics.capped.Add(t.ctx, 1)
	}
	d := outcome.Decide(t.state, r, t.limits(), t.deps.Random)
	end := &ending{at: d.Next, text: e.Error}
	switch d.Action {
	case outcome.Retry:
		end.do, e.NextAttemptAt = store.PushRetry, d.Next
		t.counts.add(Report{Retries: 1})
		t.metrics.retried(t.ctx, d.Next.Sub(r.At))
	case outcome.Park:
		end.do, end.reason = store.PushPark, d.Reason
		t.counts.add(Report{Parked: 1})
		t.metrics.parkedFor(t.ctx, d.Reason)
		if r.Class == rendezvous.ClassConfig {
			t.metrics.refusedBy(t.ctx, e.Code)
		}
	default:
		end.do, end.why = store.PushRelease, store.ReleaseOwn
		if t.ctx.Err() != nil {
			*end = *t.stopped()
		}
	}
	if r.Class == rendezvous.ClassForbidden {
		t.metrics.refusedBy(t.ctx, e.Code)
	}
	t.attempts = append(t.attempts, e)
	t.tell(e, string(end.do), end.reason, false)
	return end
}

// tell is the one line of an attempt: at info where a human may want to know, else at debug. It has no path, no payload and no secret.
func (t *turn) tell(e rendezvous.PushAttempt, action string, reason rendezvous.ParkReason, recovered bool) {
	level := slog.LevelDebug
	if reason != "" || recovered || e.Class == rendezvous.ClassFault {
		level = slog.LevelInfo
	}
	if !t.deps.Log.Enabled(t.life, level) {
		return
	}
	next := slog.Attr{} // left out of the line
	if !e.NextAttemptAt.IsZero() {
		next = slog.Time("next_attempt_at", e.NextAttemptAt)
	}
	t.deps.Log.LogAttrs(t.life, level, "push attempt", slog.String("tenant", t.row.Tenant), slog.String("run_id", t.row.RunID), slog.String("id", t.row.ID),
		slog.String("host", t.host), slog.Int64("seq", e.Seq), slog.Int("index", e.Index), slog.String("class", string(e.Class)), slog.Int("status", e.Status),
		slog.String("code", e.Code), slog.String("error", e.Error), slog.Bool("unknown", e.Unknown), slog.Int("attempts", t.state.Attempts),
		slog.Duration("took", e.Phases.Total), slog.Duration("queued", e.Phases.Queued), slog.String("action", action), slog.String("reason", string(reason)),
		next, slog.Bool("advice_capped", e.AdviceCapped), slog.Bool("recovered", recovered))
}

// hostOf is as much of a URL as logs may show.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}
