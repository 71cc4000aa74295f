package push_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous/push"
)

// PU-104, PU-40: a run's records go out in order, each once; the terminal one completes the registration, and the next pass sees nothing.
func TestRecordsAreDeliveredInOrderAndThenTheRegistrationIsGone(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL+"/in?key=hush"))
	p.note("r", 3)
	p.conclude("r")
	w := p.pod()
	got := w.Drive()
	eq(t, "report", got, push.Report{Registrations: 1, Records: 5, Attempts: 5, Accepted: 5, Completed: 1})
	var want []string
	for seq := range 5 {
		want = append(want, fmt.Sprintf("r/%d/0", seq+1))
	}
	if ids := v.ids(); !slices.Equal(ids, want) {
		t.Errorf("received %v, want %v", ids, want)
	}
	if row := p.get("r", "h"); row != nil {
		t.Errorf("the row is still there: %+v", row)
	}
	eq(t, "the next pass", w.Drive(), push.Report{})
}
