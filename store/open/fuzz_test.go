package open_test

import (
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// FuzzURL: a store's URL is of a known kind or refused as invalid, and no refusal tells what stands behind the scheme.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"memory:", "memory:x", "sqlite:./data", "sqlite:", "postgres://u:swordfish@h/db", "postgres:swordfish", "POSTGRESQL://h", "mysql://swordfish", "x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		kind := open.Kind(url)
		switch kind {
		case "memory", "sqlite", "postgres":
			return
		case "":
		default:
			t.Fatalf("%q is of kind %q", url, kind)
		}
		s, err := open.Open(t.Context(), url, open.Options{})
		if s != nil || rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
			t.Fatalf("%q: %v, %v", url, s, err)
		}
		if _, rest, found := strings.Cut(url, ":"); found && len(rest) > 8 && strings.Contains(err.Error(), rest) {
			t.Fatalf("%q: the refusal tells %q", url, err)
		}
	})
}
