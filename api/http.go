package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/propagation"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/wire"
)

// maxBody bounds an HTTP body: a full append, base64 and envelope included.
const maxBody = 32 << 20

var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// HTTP serves POST /v1/<tenant>/<verb> and POST /v1/<tenant>/events.
func (s *Service) HTTP(tokens *Tokens) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/{tenant}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		defer s.contain(r.Context(), overHTTP, func(e *rendezvous.Error) { writeReply(w, nil, e) })
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		reply, err := s.serve(ctx, w, r, tokens)
		writeReply(w, reply, err)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			writeError(w, http.StatusMethodNotAllowed, rendezvous.Errorf(rendezvous.CodeInvalid, "send POST /v1/<tenant>/<verb>"))
			return
		}
		writeReply(w, nil, rendezvous.Errorf(rendezvous.CodeNotFound, "there is nothing at this path; send POST /v1/<tenant>/<verb>"))
	})
	return mux
}

func (s *Service) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, tokens *Tokens) (any, error) {
	tenant, name := r.PathValue("tenant"), r.PathValue("verb")
	if !tokens.Any() {
		if err := local(r); err != nil {
			return nil, err
		}
	}
	who, err := tokens.Caller(r.Header.Get("Authorization"))
	if err != nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="rendezvous"`)
		return nil, err
	}
	if name != "events" { // which says by its content type how the events come
		if err := saysJSON(r.Header); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, rendezvous.Errorf(rendezvous.CodeTooLarge, "the body is over the limit of %d bytes; send less at once", maxBody).With("limit", maxBody)
	case err != nil:
		return nil, rendezvous.InvalidField("body", "could not be read to its end")
	}
	if name == "events" {
		return s.observed(ctx, overHTTP, tenant, "events", func(ctx context.Context) (any, error) { return s.eventsDoor(ctx, tenant, who, r.Header, body) })
	}
	return s.call(ctx, overHTTP, tenant, name, who, body)
}

// eventsDoor takes CloudEvents in their three modes.
func (s *Service) eventsDoor(ctx context.Context, tenant string, who Caller, header http.Header, body []byte) (any, error) {
	if err := who.may(tenant, RoleProducer); err != nil {
		return nil, err
	}
	t, err := s.tenant(tenant)
	if err != nil {
		return nil, err
	}
	messages, err := cloudevents.Decode(header, body)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, rendezvous.InvalidField("body", "holds no event")
	}
	results, err := call{Service: s, tenant: t, caller: who}.put(ctx, messages)
	if err != nil {
		return nil, err
	}
	if len(results.Results) == 1 && results.Results[0].Error != nil {
		return nil, results.Results[0].Error.Domain() // the one event is the whole
	}
	return results, nil
}

func writeReply(w http.ResponseWriter, reply any, err error) {
	if err != nil {
		e := rendezvous.AsError(err)
		writeError(w, wire.Status(e.Code), e)
		return
	}
	writeJSON(w, http.StatusOK, reply)
}

func writeError(w http.ResponseWriter, status int, e *rendezvous.Error) {
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, wire.ErrorBody{Error: *wire.ErrorOf(e)})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := rendezvous.EncodeJSON(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"corrupt","message":"the reply does not encode"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone: nobody to tell
}
