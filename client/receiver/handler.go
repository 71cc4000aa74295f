package receiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// DefaultMaxBody is how many bytes of a body a handler reads when it is not told otherwise: what the plane sends at most.
const DefaultMaxBody = 2 << 20

// Seen remembers the ids of messages that were handled, for at least as long as a message may come again: days, where the receiver was down for days.
// Implementations are safe for concurrent use.
type Seen interface {
	// Seen reports whether the id was remembered. On an error the sender is told to come again.
	Seen(ctx context.Context, id string) (bool, error)
	// Remember keeps the id. The sender has its answer by then: an error is the implementation's to log, and costs that a repeat is handled.
	Remember(ctx context.Context, id string)
}

// HandlerOption changes a handler.
type HandlerOption func(*handler)

// Dedupe answers a message that seen knows with 200 without calling the handler; an id is remembered once the handler answered it with a 2xx, so that one that
// failed is handled again. Two deliveries of one id at the same time are both handled.
func Dedupe(seen Seen) HandlerOption { return func(h *handler) { h.seen = seen } }

// MaxBody is how many bytes a body may have. Without it [DefaultMaxBody].
func MaxBody(n int64) HandlerOption { return func(h *handler) { h.maxBody = n } }

// Handler puts v in front of next, which is called with verified messages only: the request's body is the raw bytes again, and [FromContext] answers
// the message. A body that is too large is answered 413, a message that does not verify 401.
func (v *Verifier) Handler(next http.Handler, options ...HandlerOption) http.Handler {
	h := &handler{verifier: v, next: next, maxBody: DefaultMaxBody}
	for _, option := range options {
		option(h)
	}
	return h
}

type handler struct {
	verifier *Verifier
	next     http.Handler
	seen     Seen
	maxBody  int64
}

type contextKey struct{}

// FromContext is the verified message of a request that a [Verifier.Handler] handed on.
func FromContext(ctx context.Context) (Message, bool) {
	m, ok := ctx.Value(contextKey{}).(Message)
	return m, ok
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the body did not come whole", http.StatusBadRequest)
		return
	}
	message, err := h.verifier.Verify(r.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), contextKey{}, message))
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.once(w, r, message.ID)
}

// once calls the handler unless the id was seen.
func (h *handler) once(w http.ResponseWriter, r *http.Request, id string) {
	if h.seen == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	switch seen, err := h.seen.Seen(r.Context(), id); {
	case err != nil:
		http.Error(w, "what was handled before cannot be told; send again later", http.StatusServiceUnavailable)
		return
	case seen:
		w.WriteHeader(http.StatusOK)
		return
	}
	watched := &statusWatcher{ResponseWriter: w}
	h.next.ServeHTTP(watched, r)
	if watched.accepted() {
		h.seen.Remember(context.WithoutCancel(r.Context()), id)
	}
}

// statusWatcher keeps the status a handler answers with.
type statusWatcher struct {
	http.ResponseWriter
	status int
}

// WriteHeader keeps the first final status, as the server does.
func (w *statusWatcher) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWatcher) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWatcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// accepted: a handler that writes nothing answers 200.
func (w *statusWatcher) accepted() bool {
	return w.status == 0 || w.status >= http.StatusOK && w.status < http.StatusMultipleChoices
}
