package cloudevents_test

import (
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// A batch is cut only before an identity's second event where one of the two names its run, and keeps its order.
func TestRoundsPartAnIdentitysEventsWhereOneNamesItsRun(t *testing.T) {
	for batch, want := range map[string][]int{
		"":            {0},
		"a b a":       {3},
		"a> b> c":     {3},
		"a> a":        {1, 1},
		"a a>":        {1, 1},
		"a> a> a>":    {1, 1, 1},
		"a b a c> a>": {4, 1},
		"a> b a b":    {2, 2},
		"a> b a b b>": {2, 2, 1},
	} {
		var messages []cloudevents.Message
		for i := 0; i < len(batch); i++ {
			switch c := batch[i]; c {
			case ' ':
			case '>':
				messages[len(messages)-1].Run = "run"
			default:
				messages = append(messages, cloudevents.Message{Event: rendezvous.Event{EventID: rendezvous.EventID{Source: "s", ID: string(c)}}})
			}
		}
		var sizes []int
		var order []cloudevents.Message
		for _, r := range cloudevents.Rounds(messages) {
			sizes, order = append(sizes, len(r)), append(order, r...)
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%q: parts of %v, want %v", batch, sizes, want)
		}
		if !slices.EqualFunc(order, messages, func(a, b cloudevents.Message) bool { return a.Event.EventID == b.Event.EventID && a.Run == b.Run }) {
			t.Errorf("%q: another order", batch)
		}
	}
}
