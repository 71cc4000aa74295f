package nodetest

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
)

// Page is what the admin listener at an address answers on a path, and with which status.
func Page(t testing.TB, admin, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// Shows waits until the metrics at an admin address match every line.
func Shows(t testing.TB, admin string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		r := regexp.MustCompile("(?m)^" + line + "$")
		for end := clock.System.Now().Add(Patience); ; {
			if _, page := Page(t, admin, "/metrics"); r.MatchString(page) {
				break
			}
			if clock.System.Now().After(end) {
				t.Fatalf("the metrics do not show %s", line)
			}
			_ = clock.Sleep(t.Context(), clock.System, Look) // the context ends with the test
		}
	}
}
