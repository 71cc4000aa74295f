package push

import (
	"slices"
	"sync"
)

// places are the turns that may be under way at once: of the pod, of a gate, of a tenant (push.md section 5).
type places struct {
	mu       sync.Mutex
	most     int
	gateMost int
	taken    int
	gates    map[string]int
	tenants  map[string]int
}

func newPlaces(most, gateMost int) *places {
	return &places{most: most, gateMost: gateMost, gates: map[string]int{}, tenants: map[string]int{}}
}

// free is how many rows may be claimed.
func (p *places) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most - p.taken
}

// room is of the gates that have less than most how many more turns they take.
func (p *places) room(most int) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	gates := map[string]int{}
	for gate, n := range p.gates {
		if free := p.gateMost - n; free < most {
			gates[gate] = free
		}
	}
	return gates
}

// open reports whether one of some gates takes another turn.
func (p *places) open(gates []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(gates, func(gate string) bool { return p.gates[gate] < p.gateMost })
}

// admit takes a place; false where the gate is full, or where others have due work and the tenant half of all places.
func (p *places) admit(gate, tenant string, others bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.gates[gate] >= p.gateMost || others && p.tenants[tenant] >= max(1, p.most/2) {
		return false
	}
	p.taken++
	p.gates[gate]++
	p.tenants[tenant]++
	return true
}

// leave gives a place back.
func (p *places) leave(gate, tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	drop(p.gates, gate)
	drop(p.tenants, tenant)
}

func drop(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}
