package fair

// Fetch answers at most limit rows of a queue behind a row, in order; nil is before the first.
type Fetch[R any] func(after *R, limit int) ([]*R, error)

// Merge takes the first limit rows of queues behind a row, in order. Of each a part is fetched at a time, so that little more is read than is taken.
func Merge[R any](queues []Fetch[R], after *R, limit int, compare func(a, b *R) int) ([]*R, error) {
	parts := make([]fetched[R], len(queues))
	for i, fetch := range queues {
		parts[i] = fetched[R]{fetch: fetch, last: after, next: limit/len(queues) + 1}
	}
	var rows []*R
	for len(rows) < limit {
		var head *fetched[R]
		for i := range parts {
			p := &parts[i]
			if err := p.fill(); err != nil {
				return nil, err
			}
			if len(p.rows) > 0 && (head == nil || compare(p.rows[0], head.rows[0]) < 0) {
				head = p
			}
		}
		if head == nil {
			break
		}
		rows, head.rows = append(rows, head.rows[0]), head.rows[1:]
	}
	return rows, nil
}

// fetched is what is known of a queue.
type fetched[R any] struct {
	fetch Fetch[R]
	rows  []*R // not taken yet
	last  *R
	next  int // how many are fetched next
	done  bool
}

// fill fetches where nothing is left.
func (p *fetched[R]) fill() error {
	if len(p.rows) > 0 || p.done {
		return nil
	}
	rows, err := p.fetch(p.last, p.next)
	if err != nil {
		return err
	}
	if p.done = len(rows) < p.next; len(rows) > 0 {
		p.rows, p.last = rows, rows[len(rows)-1]
	}
	p.next *= 2
	return nil
}
