package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// receive starts the receiver of all hooks, in this process, which is never killed.
func (s *hooks) receive(listen string) (stop func() error, err error) {
	l, err := net.Listen("tcp4", listen)
	if err != nil {
		return nil, err
	}
	if _, s.door, err = net.SplitHostPort(listen); err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(s.request), ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// request is one POST.
func (s *hooks) request(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed while it wrote
	}
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	h := s.number(n)
	if err != nil || h == nil || r.Host != hostOf(h.manner.name, n)+":"+s.door {
		s.ledger.violation("a message came to %s%s, where no registration sends it", r.Host, r.URL.Path)
		return
	}
	a, err := h.read(r.Header, body)
	if err != nil {
		s.ledger.violation("a message to %s: %v", h.hookKey, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	i, do := s.begin(h, a)
	if s.calm.Load() {
		s.measure(h, a, body)
	}
	s.answer(r.Context(), w, h, i, do)
}

// read verifies a message and reads which it is.
func (h *hook) read(header http.Header, body []byte) (a attempt, err error) {
	a.began = time.Now()
	m, err := h.verifier.Verify(header, body)
	if err != nil {
		return a, err
	}
	a.key = m.Key
	run, place, _ := strings.Cut(m.ID, "/")
	if _, err := fmt.Sscanf(place, "%d/%d", &a.seq, &a.index); err != nil || run != h.run {
		return a, fmt.Errorf("its id %q is none of the run's", m.ID)
	}
	return a, nil
}

// answer does what is to be done, and notes it first: so nothing that follows from it is noted before.
func (s *hooks) answer(ctx context.Context, w http.ResponseWriter, h *hook, i int, do act) {
	if do.hang {
		<-ctx.Done()
	} else {
		pause(ctx, do.after)
	}
	switch {
	case ctx.Err() != nil: // the sender is gone
		s.end(h, i, func(*attempt) {})
	case do.cut:
		s.end(h, i, func(a *attempt) { a.accepted = true })
		hangUp(w, true)
	default:
		s.end(h, i, func(a *attempt) { a.status, a.accepted, a.seen = do.status, do.ok(), do.ok() })
		if do.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(do.retryAfter))
		}
		if do.status/100 == 3 {
			w.Header().Set("Location", "http://nowhere.localhost/")
		}
		w.WriteHeader(do.status)
		_ = http.NewResponseController(w).Flush()
		if do.leave {
			hangUp(w, false)
		}
	}
}

// hangUp closes the connection; abruptly, so that the other side reads a reset.
func hangUp(w http.ResponseWriter, abruptly bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // it is closed already
	}
	if tcp, ok := conn.(*net.TCPConn); ok && abruptly {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// measure notes how long after its record a message came that nothing held up: one of a steady receiver, recorded while it was registered.
func (s *hooks) measure(h *hook, a attempt, body []byte) {
	var event struct {
		Time time.Time `json:"time"`
	}
	if h.manner.name != manners[0].name || h.a2a || json.Unmarshal(body, &event) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.made.IsZero() && h.made.Before(event.Time) && !h.parking {
		s.late = append(s.late, a.began.Sub(event.Time))
	}
}

func (k hookKey) String() string { return k.tenant + "/" + k.run + " " + k.id }
