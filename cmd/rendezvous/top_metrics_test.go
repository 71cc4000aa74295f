package main

import (
	"slices"
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
