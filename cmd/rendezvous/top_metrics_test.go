package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestTopTakesNoOtherPlanesNumbers: without --metrics only the server on the default port is taken to have the default admin address beside it.
func TestTopTakesNoOtherPlanesNumbers(t *testing.T) {
	for server, want := range map[string][]string{
		"http://127.0.0.1:7480":    {"http://127.0.0.1:7481/metrics"},
		"http://localhost:7480":    {"http://localhost:7481/metrics"},
		"http://127.0.0.1:8480":    nil,
		"http://example.com:7480":  nil,
		"https://example.com/api/": nil,
	} {
		m, err := newMeters(nil, server)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range m.sources {
			got = append(got, s.url)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %s: %v, want %v", server, got, want)
		}
	}
}

// TestTopReadsNoNumberThatIsNone: JSON has no NaN and no infinity, so such a page is told as unread, and top goes on; ages end at what can be shown.
func TestTopReadsNoNumberThatIsNone(t *testing.T) {
	for _, n := range []string{"NaN", "+Inf"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, "# TYPE rendezvous_sweep_pages_total counter\n# TYPE rendezvous_sweep_oldest_due_seconds gauge\n"+
				"rendezvous_sweep_pages_total{pass=\"unmet\"} 1\nrendezvous_sweep_oldest_due_seconds{pass=\"unmet\"} %s\n", n)
		}))
		defer s.Close()
		m, err := newMeters([]string{s.URL}, "")
		if err != nil {
			t.Fatal(err)
		}
		var l topLook
		m.read(t.Context(), &l)
		if _, err := json.Marshal(l); err != nil || len(l.Unread) != 1 {
			t.Errorf("%s: %v, unread %v", n, err, l.Unread)
		}
	}
	if got := ageText(map[string]float64{"woken": 1e12}, "woken"); strings.HasPrefix(got, "-") {
		t.Errorf("an age of %s", got)
	}
}
