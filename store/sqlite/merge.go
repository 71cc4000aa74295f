package sqlite

// queue is rows in order; fetch answers those behind a row, or, for nil, the first.
type queue[R any] struct {
	fetch func(after *R, limit int) ([]*R, error)
	rows  []*R // fetched and not taken
	last  *R   // fetched
	part  int  // how many are fetched next
	done  bool
}

// fill fetches where nothing is left.
func (q *queue[R]) fill() error {
	if len(q.rows) > 0 || q.done {
		return nil
	}
	rows, err := q.fetch(q.last, q.part)
	if err != nil {
		return err
	}
	if q.done = len(rows) < q.part; len(rows) > 0 {
		q.rows, q.last = rows, rows[len(rows)-1]
	}
	q.part *= 2
	return nil
}

// merged takes the first of all queues' rows, in order. Of each a part is fetched at a time, so that little more is read than is taken.
func merged[R any](queues []*queue[R], limit int, compare func(a, b *R) int) ([]*R, error) {
	var rows []*R
	for _, q := range queues {
		q.part = limit/len(queues) + 1
	}
	for len(rows) < limit {
		var head *queue[R]
		for _, q := range queues {
			if err := q.fill(); err != nil {
				return nil, err
			}
			if len(q.rows) > 0 && (head == nil || compare(q.rows[0], head.rows[0]) < 0) {
				head = q
			}
		}
		if head == nil {
			break
		}
		rows, head.rows = append(rows, head.rows[0]), head.rows[1:]
	}
	return rows, nil
}
