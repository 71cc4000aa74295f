package backend

// Listing makes a page of a list from rows that come in its order.
type Listing[R, P any] struct {
	Limit int
	At    func(row *R) P

	Rows []*R
	Next P // where the following page goes on, zero at the end
}

// Add takes the next row up and reports whether the page is done. Rows that do not pass the filter may be left out, but for the last one that the page may look at.
func (l *Listing[R, P]) Add(row *R, passes, last bool) (done bool) {
	if passes && len(l.Rows) == l.Limit { // one more tells whether this is the last page
		l.Next = l.At(l.Rows[l.Limit-1])
		return true
	}
	if passes {
		l.Rows = append(l.Rows, row)
	}
	if last {
		l.Next = l.At(row)
	}
	return last
}

// NumberAt is a wait's place by number.
func NumberAt(w *Wait) int64 { return w.Number }

// ParkedAt is a wait's place among parked ones.
func ParkedAt(w *Wait) ParkedPosition {
	return ParkedPosition{Set: true, Quarantined: !w.QuarantinedAt.IsZero(), At: w.NextAttemptAt, Number: w.Number}
}

// StartedAt is a workflow's place by start.
func StartedAt(w *Workflow) WorkflowPosition {
	return WorkflowPosition{Set: true, StartedAt: w.StartedAt, ID: w.ID}
}
