package sweep

import (
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

// Counts is what became of the rows of a pass.
type Counts struct {
	Handed      int // rows the store handed out
	Done        int // of these: as they should be now
	Deferred    int // left for later: their run is leased
	Failed      int // failed alone; they come again, later
	Released    int // events given back by waits of concluded runs
	Quarantined int // waits or runs that fail for ever; an operator has to look
}

func (c *Counts) add(o Counts) {
	c.Handed += o.Handed
	c.Done += o.Done
	c.Deferred += o.Deferred
	c.Failed += o.Failed
	c.Released += o.Released
	c.Quarantined += o.Quarantined
}

// PassReport is what a pass did in one tick.
type PassReport struct {
	Pass string
	Counts
	Pages     int
	Saturated bool           // more was due when its pages were used up (S7)
	Oldest    time.Duration  // how long the row was due that was due longest; 0 where that is not known
	Types     map[string]int // of unclaimed: retired events by type, of the first types
	Took      time.Duration
	Err       error // its last page failed, broke off, or does not come back
}

// Report is what one tick came to. It is made whatever fails (S4).
type Report struct {
	At        time.Time // when the tick began, by the process's clock
	Took      time.Duration
	Passes    []PassReport // of the passes that were due, in their order
	Depths    store.Depths // as last seen
	DepthsErr error        // the depths were not seen: they are missing or old
	Attention []Attention  // what a human should look at
}

// Pass answers the report of a pass, false when it was not due.
func (r Report) Pass(name string) (PassReport, bool) {
	for _, p := range r.Passes {
		if p.Pass == name {
			return p, true
		}
	}
	return PassReport{}, false
}
