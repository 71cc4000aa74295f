package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/clock"
)

// pushListenCmd is a receiver for trying webhooks out.
type pushListenCmd struct {
	Addr      string   `help:"Address to listen on, of this machine only." default:"127.0.0.1:8787" placeholder:"HOST:PORT"`
	Key       []string `help:"Key to verify signatures with: @file, or whsec_ or whpk_ text; may be given again. None: nothing is verified." sep:"none" placeholder:"SECRET"`
	Status    int      `help:"Status to answer with; with --fail-first, to those only." placeholder:"STATUS"`
	FailFirst int      `help:"Fail so many requests first (with 500 unless --status says), then answer 200." placeholder:"N"`
	Count     int      `help:"End after so many requests; 0: never." placeholder:"N"`
	Output    string   `short:"o" help:"table for people, json or jsonl for programs." enum:"table,json,jsonl" default:"table"`
}

func (c *pushListenCmd) Run(ctx context.Context) error {
	h := &hook{fail: -1, status: c.Status}
	switch {
	case c.FailFirst < 0 || c.Count < 0:
		return rendezvous.InvalidField("fail-first", "and count are 0 or more")
	case c.Status != 0 && (c.Status < 200 || c.Status > 599):
		return rendezvous.InvalidField("status", "%d is outside 200..599", c.Status)
	case c.Status == 0 && c.FailFirst == 0:
		h.status = http.StatusOK
	case c.Status == 0:
		h.status = http.StatusInternalServerError
	}
	if c.FailFirst > 0 {
		h.fail = c.FailFirst
	}
	var keys []string
	for _, flag := range c.Key {
		key, err := secretOf(flag)
		if err != nil {
			return err
		}
		keys = append(keys, key.Reveal())
	}
	if err := h.verifyWith(keys); err != nil {
		return err
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	seen := 0
	h.got = func(r received) {
		c.print(r)
		if seen++; seen == c.Count {
			h.over = true
			enough()
		}
	}
	stop, err := h.listen(c.Addr)
	if err != nil {
		return err
	}
	if c.Output == "table" {
		fmt.Printf("listening on %s; Ctrl-C ends. A plane that may send here: rendezvous up --push-caller-hosts %s --push-dev-loopback\n", h.url, h.host)
	}
	<-ctx.Done()
	return stop()
}

func (c *pushListenCmd) print(r received) {
	switch c.Output {
	case "json":
		_ = printJSON(r, "  ")
	case "jsonl":
		_ = printJSON(r, "")
	default:
		fmt.Printf("%s  %-10s %d  attempt %s  %s  %s\n", clockTime(r.At), r.Signature, r.Status, dash(r.Attempt), dash(r.Type), dash(r.ID))
		if r.Why != "" {
			fmt.Printf("    %s\n", r.Why)
		}
		fmt.Printf("    %s\n", shorten(string(r.Body), 200))
	}
}

// received is a request as it is printed.
type received struct {
	At        time.Time       `json:"at"`
	ID        string          `json:"id"`
	Type      string          `json:"type,omitempty"` // of a CloudEvent
	Attempt   string          `json:"attempt"`
	Signature string          `json:"signature"` // verified, refused, or unverified: there is no key to do it with
	Why       string          `json:"why,omitempty"`
	Status    int             `json:"status"` // answered
	Body      json.RawMessage `json:"body,omitempty"`
}

// What became of a signature.
const (
	sigVerified   = "verified"
	sigRefused    = "refused"
	sigUnverified = "unverified"
)

// hook is a receiver of webhooks.
type hook struct {
	verifier *receiver.Verifier // nil: nothing is verified
	got      func(r received)   // called one at a time
	url      string             // where it listens
	host     string

	mu     sync.Mutex
	status int  // answered, while fail is not 0
	fail   int  // requests that are still to fail; negative: all are answered by status
	over   bool // what still comes is not taken: who ends after so many has not seen it
}

func (h *hook) verifyWith(keys []string) (err error) {
	if len(keys) == 0 {
		return nil
	}
	if h.verifier, err = receiver.New(keys); err != nil {
		return rendezvous.InvalidField("key", "%s", err)
	}
	return nil
}

// listen serves on an address of this machine until it is stopped.
func (h *hook) listen(address string) (stop func() error, err error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, rendezvous.InvalidField("addr", "%q is no address of this machine alone; give one such as 127.0.0.1:8787", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, rendezvous.InvalidField("addr", "cannot listen on %s; choose another: %v", address, err)
	}
	h.host = host
	if strings.Contains(host, ":") {
		h.host = "[" + host + "]"
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	h.url = "http://" + h.host + ":" + port
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return func() error {
		ctx, cancel := clock.WithTimeout(context.Background(), clock.System, 5*time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// answers has all requests to come answered with a status.
func (h *hook) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.fail = status, -1
}

// ServeHTTP implements http.Handler.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, receiver.DefaultMaxBody))
	if err != nil {
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
		return
	}
	got := received{At: clock.System.Now(), ID: r.Header.Get("webhook-id"), Attempt: r.Header.Get("rendezvous-attempt"), Signature: sigUnverified}
	if h.verifier != nil {
		got.Signature = sigVerified
		if _, err := h.verifier.Verify(r.Header, body); err != nil {
			got.Signature, got.Why = sigRefused, err.Error()
		}
	}
	var e struct {
		Type string `json:"type"`
	}
	if json.Valid(body) {
		got.Body = body
		_ = json.Unmarshal(body, &e) // an A2A message has none
		got.Type = e.Type
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		http.Error(w, "it has ended", http.StatusServiceUnavailable)
		return
	}
	got.Status = h.next(got.Signature)
	h.got(got)
	w.WriteHeader(got.Status)
}

// next is the status of the next answer. h.mu is held.
func (h *hook) next(signature string) int {
	switch {
	case signature == sigRefused:
		return http.StatusUnauthorized
	case h.fail == 0:
		return http.StatusOK
	case h.fail > 0:
		h.fail--
	}
	return h.status
}
