package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// maxCalls bounds the NATS calls a process works at once; further ones wait in their subscriptions.
const maxCalls = 512

// envelope is what a reply leaves of max_payload for its headers.
const envelope = 4 << 10

// flushPatience bounds the wait for the server to know the endpoints; they are made anew at every connection.
const flushPatience = 2 * time.Second

// NATS is the request/reply door: a micro service named rendezvous with one endpoint per verb.
type NATS struct {
	service *Service
	prefix  string
	conn    *nats.Conn
	micro   micro.Service
	slots   chan struct{}            // of calls under way
	refused map[string]*atomic.Int64 // calls, by verb
	polls   chan struct{}            // of runs.history, which may wait for long: so polls never keep the other verbs out

	mu    sync.Mutex
	down  bool // no call begins any more
	calls sync.WaitGroup

	ctx    context.Context
	cancel context.CancelFunc
}

// ServeNATS answers requests to <prefix>.<tenant>.api.<verb>. Who may call what is the account's permissions (api.md section 4). Stop it before the connection.
func (s *Service) ServeNATS(conn *nats.Conn, prefix, version string) (*NATS, error) {
	n := &NATS{service: s, prefix: prefix, conn: conn, slots: make(chan struct{}, maxCalls), polls: make(chan struct{}, maxCalls)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.refused = map[string]*atomic.Int64{}
	for _, name := range s.Verbs() {
		n.refused[name] = &atomic.Int64{}
	}
	var err error
	n.micro, err = micro.AddService(conn, micro.Config{
		Name: "rendezvous", Version: version, Description: "Events meet the runs that wait for them, exactly once.", QueueGroup: "rendezvous",
		StatsHandler: n.stats,
	})
	if err != nil {
		n.cancel()
		return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "the service could not be added to NATS").Because(err)
	}
	if err := n.addEndpoints(); err != nil {
		_ = n.micro.Stop()
		n.cancel()
		return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "an endpoint could not be added to NATS").Because(err)
	}
	if conn.IsConnected() {
		_ = conn.FlushTimeout(flushPatience) // so that the server knows the endpoints when the process says it is ready
	}
	return n, nil
}

func (n *NATS) addEndpoints() error {
	verbs := n.service.Verbs()
	slices.Sort(verbs)
	for _, name := range verbs {
		if err := n.micro.AddEndpoint(strings.ReplaceAll(name, ".", "_"), micro.HandlerFunc(n.handle),
			micro.WithEndpointSubject(n.prefix+".*.api."+name)); err != nil {
			return err
		}
	}
	return n.micro.AddEndpoint("unknown", micro.HandlerFunc(n.unknown), micro.WithEndpointSubject(n.prefix+".*.api.>"), micro.WithEndpointQueueGroup("rendezvous-unknown"))
}

// unknown answers what no other endpoint does. Its queue group is its own: NATS gives a message to one member of a group, whatever subject each member
// asked for, so in the verbs' group it would take every second call of a known verb.
func (n *NATS) unknown(req micro.Request) {
	if _, known := n.service.verbs[n.verb(req.Subject())]; !known {
		n.handle(req)
	}
}

// tenant and verb are parts of the subject <prefix>.<tenant>.api.<verb>.
func (n *NATS) tenant(subject string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(subject, n.prefix+"."), ".")
	return name
}

func (n *NATS) verb(subject string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(subject, n.prefix+"."), ".")
	return strings.TrimPrefix(rest, "api.")
}

// stats are what the service's statistics say of an endpoint beside its calls: how many were refused.
func (n *NATS) stats(e *micro.Endpoint) any {
	count := n.refused[n.verb(e.Subject)]
	if count == nil {
		return nil // the endpoint of unknown verbs
	}
	return map[string]int64{"refused": count.Load()}
}

func (n *NATS) handle(req micro.Request) {
	slots := n.slots
	if n.verb(req.Subject()) == "runs.history" {
		slots = n.polls
	}
	select {
	case slots <- struct{}{}:
	case <-n.ctx.Done():
		n.refuse(req, goingDown())
		return
	}
	if !n.begin(func() {
		defer func() { <-slots }()
		defer n.service.contain(n.ctx, overNATS, func(e *rendezvous.Error) { n.refuse(req, e) })
		n.answer(req)
	}) {
		<-slots
		n.refuse(req, goingDown())
	}
}

func goingDown() *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "this instance is going down; nothing was done, try again")
}

// begin runs a call unless the door is down.
func (n *NATS) begin(call func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return false
	}
	n.calls.Go(call)
	return true
}

func (n *NATS) answer(req micro.Request) {
	ctx := messaging.ExtractTrace(n.ctx, nats.Header(req.Headers()))
	for request := req.Data(); ; {
		reply, err := n.service.call(ctx, overNATS, n.tenant(req.Subject()), n.verb(req.Subject()), Open(), request)
		var body []byte
		if err == nil {
			body, err = fit(reply, int(n.conn.MaxPayload())-envelope)
		}
		if err == nil {
			n.respond(req, nil, body)
			return
		}
		fewer, more := fewerRows(request, reply)
		if !errors.Is(err, rendezvous.ErrTooLarge) || !more {
			n.refuse(req, rendezvous.AsError(err))
			return
		}
		request = fewer
	}
}

func (n *NATS) refuse(req micro.Request, e *rendezvous.Error) {
	body, err := rendezvous.EncodeJSON(wire.ErrorBody{Error: *wire.ErrorOf(e)})
	if err != nil {
		body = nil
	}
	if count := n.refused[n.verb(req.Subject())]; count != nil {
		count.Add(1)
	}
	n.respond(req, nats.Header{micro.ErrorHeader: {oneLine(e.Message)}, micro.ErrorCodeHeader: {strconv.Itoa(wire.Status(e.Code))}}, body)
}

// respond answers a request. The micro library's own way is for handlers that are done when they return: it would race with its counting.
func (n *NATS) respond(req micro.Request, h nats.Header, body []byte) {
	if req.Reply() != "" {
		_ = n.conn.PublishMsg(&nats.Msg{Subject: req.Reply(), Header: h, Data: body}) // the connection is gone: the requester asks again
	}
}

func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// fewerRows is the request of a list for half the rows that it was answered with. Lists change nothing, so they may be asked again.
func fewerRows(request []byte, reply any) ([]byte, bool) {
	rows := 0
	switch r := reply.(type) {
	case wire.RunList:
		rows = len(r.Runs)
	case wire.WaitList:
		rows = len(r.Waits)
	case wire.TimerList:
		rows = len(r.Timers)
	case wire.Chain:
		rows = len(r.Runs)
	}
	members := map[string]json.RawMessage{}
	if rows < 2 || len(bytes.TrimSpace(request)) > 0 && json.Unmarshal(request, &members) != nil {
		return nil, false
	}
	members["limit"] = json.RawMessage(strconv.Itoa(rows / 2))
	fewer, err := json.Marshal(members)
	return fewer, err == nil
}

// Stop leaves the subject, lets calls under way finish until ctx ends, and returns. Idempotent.
func (n *NATS) Stop(ctx context.Context) {
	_ = n.micro.Stop()
	n.mu.Lock()
	n.down = true
	n.mu.Unlock()
	down := make(chan struct{})
	go func() { n.calls.Wait(); close(down) }()
	select {
	case <-down:
	case <-ctx.Done():
		n.cancel()
		<-down
	}
	n.cancel()
}
