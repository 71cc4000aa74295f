package node_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is an OTLP receiver (http/protobuf) that keeps what is exported.
type receiver struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	by    map[string]string // service of a span
	raw   bytes.Buffer
}

// newReceiver starts one and points the standard environment at it.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{by: map[string]string{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	return r
}

// ServeHTTP implements http.Handler: POST /v1/traces.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not an export of traces", http.StatusBadRequest)
		return
	}
	var data tracepb.TracesData // on the wire the same as an export request
	if err := proto.Unmarshal(body, &data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw.Write(body)
	for _, resource := range data.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, s)
				r.by[hex.EncodeToString(s.SpanId)] = service
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// find answers the spans of that name that hold.
func (r *receiver) find(name string, holds func(*tracepb.Span) bool) []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range r.spans {
		if s.Name == name && holds(s) {
			found = append(found, s)
		}
	}
	return found
}

func (r *receiver) service(s *tracepb.Span) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[hex.EncodeToString(s.SpanId)]
}

// holds reports whether any export held the bytes.
func (r *receiver) holds(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.raw.Bytes(), []byte(text))
}

// attribute is a span's attribute as text, "" without it.
func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key != key {
			continue
		}
		if text := a.Value.GetStringValue(); text != "" {
			return text
		}
		return a.Value.String()
	}
	return ""
}
