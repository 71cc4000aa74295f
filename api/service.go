package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Sender sends notices after a commit.
type Sender interface {
	Try(ctx context.Context, n store.Notices)
}

// Door takes events in. The functions it answers wait for the commit; each is called once.
type Door interface {
	HandAll(ctx context.Context, tenant string, events []rendezvous.Event) func() ([]store.Buffered, []error)
	HandTo(ctx context.Context, tenant, run string, e rendezvous.Event, keep bool) func() (store.Delivery, error)
}

// Config is what a service is given. All but Targets and Checks is required.
type Config struct {
	Store   store.Store
	Door    Door
	Sender  Sender
	Clock   clock.Clock
	Log     *slog.Logger
	Tracer  trace.Tracer
	Meter   metric.Meter
	Version string
	Kind    string                                     // of the store, as system.info names it
	Targets *target.Policy                             // where callers' registrations may go (push.md section 11); nil: nowhere
	Checks  []func(ctx context.Context) (bad []string) // of system.check, each answering its reasons, none where all is well
}

// Service answers the verbs. Make it with [New], end it with Stop.
type Service struct {
	cfg      Config
	waits    *group.Group[store.RegisterItem, store.Registered]
	closing  chan struct{} // closed when long polls are to end
	endPolls func()
	sending  notify.Sendings
	verbs    map[string]verb
	calls    metric.Int64Counter
	duration metric.Float64Histogram
}

// New makes a service.
func New(cfg Config) (*Service, error) {
	calls, err := cfg.Meter.Int64Counter("rendezvous.api.calls", metric.WithUnit("{call}"), metric.WithDescription("Calls of verbs, by verb and code."))
	if err != nil {
		return nil, err
	}
	duration, err := cfg.Meter.Float64Histogram("rendezvous.api.duration", metric.WithUnit("s"), metric.WithDescription("Time of a verb."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	if err != nil {
		return nil, err
	}
	if cfg.Targets == nil {
		if cfg.Targets, err = target.New(target.Settings{}); err != nil {
			return nil, err
		}
	}
	s := &Service{cfg: cfg, calls: calls, duration: duration, sending: notify.Sendings{Log: cfg.Log}}
	s.closing = make(chan struct{})
	s.endPolls = sync.OnceFunc(func() { close(s.closing) })
	s.waits = group.New(group.Config{Log: cfg.Log}, func(i store.RegisterItem) int { return 256 + 64*len(i.Keys) }, s.register)
	s.verbs = s.table()
	return s, nil
}

// EndPolls has long polls answer with what there is, those to come too: the doors are about to close, and are not to wait for them.
func (s *Service) EndPolls() { s.endPolls() }

// Stop refuses new grouped calls, commits what waits and sends its notices. When ctx ends first, commits and sendings are cancelled, and the error says what
// was left. Idempotent.
func (s *Service) Stop(ctx context.Context) error {
	s.endPolls()
	s.waits.Stop(ctx)
	return s.sending.Stop(ctx)
}

// Verbs names what is built.
func (s *Service) Verbs() []string {
	names := make([]string, 0, len(s.verbs))
	for name := range s.verbs {
		names = append(names, name)
	}
	return names
}

// try sends notices without holding up the answer.
func (s *Service) try(ctx context.Context, n store.Notices) {
	if !n.Empty() {
		s.sending.Go(ctx, func(ctx context.Context) { s.cfg.Sender.Try(ctx, n) })
	}
}

func (s *Service) register(ctx context.Context, items []store.RegisterItem) ([]store.Registered, error) {
	got, err := s.cfg.Store.RegisterBatch(ctx, items, time.Time{})
	if err != nil {
		return nil, err
	}
	var all store.Notices
	for _, g := range got {
		all.Append(g.Notices)
	}
	s.try(ctx, all)
	return got, nil
}

// call is one call of a verb.
type call struct {
	*Service
	tenant store.Tenant
	caller Caller
}

// verb is one row of the table: who may call it and what it does.
type verb struct {
	role Role
	push bool // the right push too
	do   func(ctx context.Context, c call, body []byte) (any, error)
}

// handle makes a verb of a function over its request and reply.
func handle[Req, Rep any](role Role, fn func(ctx context.Context, c call, req Req) (Rep, error)) verb {
	return verb{role: role, do: func(ctx context.Context, c call, body []byte) (any, error) {
		var req Req
		if err := decode(body, &req); err != nil {
			return nil, err
		}
		return fn(ctx, c, req)
	}}
}

// Doors as traces name them.
const (
	overHTTP = "http"
	overNATS = "nats"
)

// call answers one request. The reply is to be encoded as JSON; the error is of the closed set.
func (s *Service) call(ctx context.Context, door, tenant, name string, who Caller, body []byte) (any, error) {
	known, label := s.verbs[name], name
	if known.do == nil {
		label = "unknown"
	}
	return s.observed(ctx, door, tenant, label, func(ctx context.Context) (any, error) {
		return s.answer(ctx, tenant, name, known, who, body)
	})
}

// observed traces and counts a call through a door.
func (s *Service) observed(ctx context.Context, door, tenant, label string, do func(ctx context.Context) (any, error)) (any, error) {
	start := s.cfg.Clock.Now()
	ctx, span := s.cfg.Tracer.Start(ctx, label, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system.name", "rendezvous"), attribute.String("rpc.method", label), attribute.String("rendezvous.tenant", cloudevents.ShownName(tenant))))
	defer span.End()
	reply, err := do(ctx)
	code, status := rendezvous.Code("ok"), http.StatusOK
	if err != nil {
		err = s.closed(ctx, label, err)
		code = rendezvous.CodeOf(err)
		status = wire.Status(code)
		span.SetAttributes(attribute.String("error.type", string(code)))
	}
	if status >= http.StatusInternalServerError { // the others are the caller's
		span.SetStatus(codes.Error, string(code))
	}
	if door == overHTTP {
		span.SetAttributes(attribute.String("http.request.method", http.MethodPost), attribute.String("http.route", "/v1/{tenant}/{verb}"),
			attribute.Int("http.response.status_code", status))
	}
	labels := metric.WithAttributes(attribute.String("verb", label), attribute.String("code", string(code)))
	s.calls.Add(ctx, 1, labels)
	s.duration.Record(ctx, s.cfg.Clock.Now().Sub(start).Seconds(), labels)
	return reply, err
}

// answer is the verb's own work. A panic in it is that call's trouble alone: over NATS it would end the process.
func (s *Service) answer(ctx context.Context, tenant, name string, v verb, who Caller, body []byte) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := who.may(tenant, v.role); err != nil {
		return nil, err
	}
	if v.do == nil {
		return nil, unknownVerb(name)
	}
	if v.push {
		if err := who.mayPush(); err != nil {
			return nil, err
		}
	}
	t, err := s.tenant(tenant)
	if err != nil {
		return nil, err
	}
	return v.do(ctx, call{Service: s, tenant: t, caller: who}, body)
}

// contain answers for a call that broke off outside its verb's own work, where what it did is not known. A panic of one call ends no process, whose other
// calls it would cut.
func (s *Service) contain(ctx context.Context, door string, answer func(e *rendezvous.Error)) {
	if p := recover(); p != nil {
		s.cfg.Log.ErrorContext(ctx, "call panicked", "door", door, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		answer(rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the call broke off inside; it may or may not be done, repeat it"))
	}
}

// tenant is a tenant's handle, which must be that tenant's (EV-17, I14).
func (s *Service) tenant(name string) (store.Tenant, error) {
	t, err := s.cfg.Store.Tenant(name)
	if err == nil && t.Name() != name {
		err = rendezvous.Errorf(rendezvous.CodeCorrupt, "the store's handle serves tenant %q, not %q; nothing was done", t.Name(), name).With("tenant", t.Name())
	}
	return t, err
}

func unknownVerb(name string) error {
	if len(name) > 64 || !utf8.ValidString(name) {
		name = "that name"
	}
	return rendezvous.Errorf(rendezvous.CodeNotFound, "there is no verb %q in this build; see docs/spec/api.md for the verbs", name).With("verb", name)
}

// closed keeps foreign errors inside: they are logged and leave as unavailable.
func (s *Service) closed(ctx context.Context, verb string, err error) error {
	var e *rendezvous.Error
	if errors.As(err, &e) {
		return e
	}
	s.cfg.Log.ErrorContext(ctx, "verb failed", "verb", verb, "error", err)
	return rendezvous.AsError(err)
}

// decode reads a request strictly: one JSON object of known members, each once and in its exact name, valid UTF-8, not too deep.
func decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return rendezvous.InvalidField("body", "is not valid UTF-8")
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	if body[0] != '{' {
		return rendezvous.InvalidField("body", "is not a JSON object")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return decodeError(err)
	}
	return strict(body, reflect.TypeOf(into).Elem())
}

func decodeError(err error) error {
	var known *rendezvous.Error
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &typed):
		what, _, _ := strings.Cut(typed.Value, " ") // a number's digits stand behind, as many as were sent
		return rendezvous.InvalidField(typed.Field, "is a JSON %s where %s belongs", what, typed.Type.Kind())
	}
	return rendezvous.InvalidField("body", "is not JSON that this verb reads")
}
