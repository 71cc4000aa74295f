package backend

import "time"

// The walks over what became matchable lately. Which rows each goes over:
const (
	NewEvents = iota // live events, by number
	NewWaits         // waits, by number
	LiveAgain        // events whose LiveSince was set anew, by (LiveSince, number)
	OpenAgain        // waits whose OpenSince was set anew, by (OpenSince, number)
	NewsWalks
)

// News is where each of the walks goes on: behind that place.
type News [NewsWalks]Place

// NewsPage is what one look at the news found.
type NewsPage struct {
	Rows []*Event // by number, fair by tenant; rows locked by others are skipped
	Next News     // where the walks go on, each before every event that is owed a place and got none
	More bool     // one of them has not come to its end
}

// Place is a row's place in a walk. Walks by number alone have no instant.
type Place struct {
	At     time.Time
	Number int64
}

// Before is the place right before that of the row.
func (p Place) Before() Place { return Place{p.At, p.Number - 1} }

// Compare is the order of a walk.
func (p Place) Compare(q Place) int {
	if c := p.At.Compare(q.At); c != 0 {
		return c
	}
	switch {
	case p.Number < q.Number:
		return -1
	case p.Number > q.Number:
		return 1
	}
	return 0
}
