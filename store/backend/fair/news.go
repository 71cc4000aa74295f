package fair

// News looks at what is new in tenants' queues and takes what has met: rows that are Held have not, and are passed. firsts are the first new rows of tenants that
// have any, the earliest first, of which it looks at as many tenants as it is told; start is behind what is not new. It answers the rows it took, and where the
// next look is to begin, nil when all was looked at. Each look gets further.
func News(firsts []KeyRow, tenants int, start KeyRow, limit, look int, fetch func(ranges []Range) ([]KeyRow, error)) (met []KeyRow, stop *KeyRow, err error) {
	if len(firsts) > tenants { // nobody looks at these
		other := justBefore(firsts[tenants])
		firsts, stop = firsts[:tenants], &other
	}
	q := Queues{Limit: max(limit, len(firsts)), Look: look, Start: &start, Fetch: fetch}
	for _, f := range firsts {
		q.Tenants = append(q.Tenants, f.Tenant)
	}
	if _, _, _, err := q.Take(); err != nil {
		return nil, nil, err
	}
	for _, o := range q.queues {
		for i := range o.parts {
			if p := &o.parts[i]; len(p.events) > 0 || !p.done {
				stop = earlier(stop, p.reached())
			}
		}
	}
	return q.taken, stop, nil
}

// reached is where the part goes on: before the first event that was not looked at, or behind what was fetched.
func (p *part) reached() KeyRow {
	if len(p.events) > 0 {
		return justBefore(p.events[0])
	}
	return *p.After
}

func earlier(a *KeyRow, b KeyRow) *KeyRow {
	if a != nil && Before(*a, b) <= 0 {
		return a
	}
	return &b
}

// justBefore is a place behind which a row is the first.
func justBefore(r KeyRow) KeyRow {
	r.Number--
	return r
}
