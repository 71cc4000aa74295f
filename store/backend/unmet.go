package backend

import "time"

// UnmetLook is where a look for events that were left apart goes on: at what became matchable lately, and at a slice of all live events.
type UnmetLook struct {
	Before        time.Time // both sides of a pair are no younger
	Events, Waits Mark      // news begin behind these: events by LiveSince and waits by OpenSince
	Slice         KeyPlace  // the slice begins behind this
}

// Mark is a place among rows by an instant and their number; the zero value is behind all.
type Mark struct {
	At     time.Time
	Number int64
}

// KeyPlace is a place among key rows, by their primary key; the zero value is before all.
type KeyPlace struct {
	Tenant, Namespace, Value, Type string
	Number                         int64
}

// UnmetPage is what a look found.
type UnmetPage struct {
	Rows []*Event
	// Where the next look goes on. A zero mark: all news up to Before were looked at. When an event got no place, nothing has moved: those that got one are taken.
	Events, Waits Mark
	Slice         KeyPlace
	Around        bool // the slice was the last one, and every event that it owed a place got one
	More          bool // more was due, or new, than the page has
}
