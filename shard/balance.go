package shard

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
)

// memberName is what stays of an incarnation when the pod starts again: it prefers the shards it had.
func memberName(incarnation string) string {
	if slash := strings.LastIndexByte(incarnation, '/'); slash >= 0 {
		return incarnation[:slash]
	}
	return incarnation
}

// rank is how much a member prefers a shard: the same number in every pod.
func rank(shard int, incarnation string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(memberName(incarnation)))
	h.Write(binary.BigEndian.AppendUint32([]byte{0}, uint32(shard)))
	x := h.Sum64() // whose last bytes are mixed too little to compare by
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// division is who holds how much, by incarnations of members that live and do not drain.
type division struct {
	shards int
	held   map[string]int
}

// members are in the order in which they are to have one more than others: who holds most first, so that nothing moves without need.
func (d division) members() []string {
	all := make([]string, 0, len(d.held))
	for m := range d.held {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(d.held[b], d.held[a]), cmp.Compare(a, b)) })
	return all
}

// quotas are how many shards each is to hold: they add up to all, and differ by at most one.
func (d division) quotas() map[string]int {
	quotas := make(map[string]int, len(d.held))
	for i, m := range d.members() {
		quotas[m] = d.shards / len(d.held)
		if i < d.shards%len(d.held) {
			quotas[m]++
		}
	}
	return quotas
}

// ceil is the highest quota.
func (d division) ceil() int {
	if len(d.held) == 0 {
		return 0
	}
	return (d.shards + len(d.held) - 1) / len(d.held)
}

// floor is the lowest quota.
func (d division) floor() int {
	if len(d.held) == 0 {
		return 0
	}
	return d.shards / len(d.held)
}

// wish says who is to take which of the free shards: each goes to the member below its quota that prefers it most. Every pod that sees the same directory wishes
// the same.
func (d division) wish(free []int) map[int]string {
	type pair struct {
		rank   uint64
		shard  int
		member string
	}
	var pairs []pair
	for _, s := range free {
		for m := range d.held {
			pairs = append(pairs, pair{rank(s, m), s, m})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.shard, b.shard), cmp.Compare(a.member, b.member))
	})
	room := d.quotas()
	for m, n := range d.held {
		room[m] -= n
	}
	taken := make(map[int]string, len(free))
	for _, p := range pairs {
		if taken[p.shard] == "" && room[p.member] > 0 {
			taken[p.shard] = p.member
			room[p.member]--
		}
	}
	return taken
}

// preferred sorts shards, those that a member prefers most first.
func preferred(shards []int, incarnation string) []int {
	slices.SortFunc(shards, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(b, incarnation), rank(a, incarnation)), cmp.Compare(a, b))
	})
	return shards
}
