package rendezvous_test

import (
	"testing"

	"github.com/rendezvous-events/rendezvous"
)

// The kinds' own structs encode canonically as they are: sorted members, no blanks, no escapes for HTML. A member out of order would give one record two
// encodings.
func TestTheDataOfEveryKindEncodesCanonically(t *testing.T) {
	key := rendezvous.Key{Namespace: "a<b", Value: "\u2028 & \"é"}
	for _, data := range []any{
		rendezvous.RunStartedData{CodeVersion: "1", Parent: "p", PreviousRun: "r", Queue: "q", Type: "<t>"},
		rendezvous.RunFailedData{Code: "c", FailedEffect: "e", Reason: "r"},
		rendezvous.ReasonData{Reason: "r"},
		rendezvous.RunContinuedData{NextRun: "n"},
		rendezvous.NameData{Name: "n"},
		rendezvous.EffectFailedData{Code: "c", Reason: "r", Retryable: true},
		rendezvous.WaitRegisteredData{From: "f", Keys: []rendezvous.Key{key}, Type: "t"},
		rendezvous.WaitAnsweredData{EventID: "i", EventSource: "s", EventType: "t", Key: &key, ReceivedAt: "now", Targeted: true},
	} {
		got := rendezvous.EncodeData(data)
		want, err := rendezvous.CanonicalJSON(got)
		if err != nil || string(got) != string(want) {
			t.Errorf("%T encodes as %s, canonical is %s (%v)", data, got, want, err)
		}
	}
}
