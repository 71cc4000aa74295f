package engine

import (
	"strings"
	"unicode"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// hints are what the two sides of a pair nearly have in common (SW-31). Equality is bytes (R4), so what differs by case or a blank is another value; here a
// human is told that it hardly was meant to be.
func hints(e *backend.Event, w *backend.Wait) []store.Hint {
	var found []store.Hint
	if similar(e.Type, w.Type) {
		found = append(found, store.Hint{Kind: rendezvous.HintSimilarType, Event: e.Type, Wait: w.Type})
	}
	if w.From != "" && similar(e.Source, w.From) {
		found = append(found, store.Hint{Kind: rendezvous.HintSimilarSource, Event: e.Source, Wait: w.From})
	}
	if keysMeet(e, w) {
		return found
	}
	for _, wk := range w.Keys {
		for _, ek := range e.Keys {
			if similarKeys(ek, wk) {
				found = append(found, store.Hint{Kind: rendezvous.HintSimilarKey, Event: ek.String(), Wait: wk.String()})
				break
			}
		}
	}
	return found
}

// similar reports whether two values differ by no more than case and blanks at their ends.
func similar(a, b string) bool { return a != b && alike(a, b) }

func alike(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

func similarKeys(a, b rendezvous.Key) bool {
	return a.Value == b.Value || alike(a.Namespace, b.Namespace) && alike(a.Value, b.Value)
}

// shortName is how much of a name two names must share when one is within the other.
const shortName = 3

// similarNames are the names that somebody may have meant: equal but for case and punctuation, or one within the other.
func similarNames(asked string, names []string) []string {
	var found []string
	a := bareName(asked)
	for _, name := range names {
		b := bareName(name)
		if a == b || min(len(a), len(b)) >= shortName && (strings.Contains(a, b) || strings.Contains(b, a)) {
			found = append(found, name)
		}
	}
	return found
}

// bareName is the letters and digits of a name in one case.
func bareName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
