package cloudevents

import (
	"slices"

	"github.com/rendezvous-events/rendezvous"
)

// Rounds cuts a batch, in its order, into parts that may each be handed in at once: in no part does an identity stand twice where one of the two names its
// run. Such events go ways of their own into the store, and only a part that is decided before the next is handed in lets the second see what the first
// did (R3, EV-7). Nearly every batch is one part.
func Rounds(batch []Message) [][]Message {
	if !slices.ContainsFunc(batch, func(m Message) bool { return m.Run != "" }) {
		return [][]Message{batch}
	}
	var rounds [][]Message
	start := 0
	targeted := make(map[rendezvous.EventID]bool, len(batch)) // of the part: whether the identity's event names its run
	for i, m := range batch {
		if before, twice := targeted[m.Event.EventID]; twice && (before || m.Run != "") {
			rounds = append(rounds, batch[start:i])
			start = i
			clear(targeted)
		}
		targeted[m.Event.EventID] = m.Run != ""
	}
	return append(rounds, batch[start:])
}
