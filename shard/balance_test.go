package shard

import (
	"fmt"
	"slices"
	"testing"
)

// A pod of another build must wish the same: these numbers are for ever.
func TestRanksAreFixed(t *testing.T) {
	for _, v := range []struct {
		shard  int
		member string
		want   uint64
	}{
		{0, "pod-a/1", 0x5ffb1d807199321a},
		{0, "pod-a/2", 0x5ffb1d807199321a},
		{1, "pod-a/1", 0xd384b59ac470cafa},
		{0, "pod-b/1", 0x05104890c7152a4e},
		{1023, "größe/x/1", 0xc71276bb1227660f},
	} {
		if got := rank(v.shard, v.member); got != v.want {
			t.Errorf("rank of %d for %s: %#x, want %#x", v.shard, v.member, got, v.want)
		}
	}
}

func divide(shards int, held ...int) division {
	d := division{shards: shards, held: map[string]int{}}
	for i, n := range held {
		d.held[fmt.Sprintf("pod%02d/1", i)] = n
	}
	return d
}

func TestQuotasAddUpDifferByOneAndMoveLeast(t *testing.T) {
	for _, c := range []struct {
		shards int
		held   []int
		want   []int
	}{
		{64, []int{0}, []int{64}},
		{64, []int{64, 0}, []int{32, 32}},
		{64, []int{0, 64}, []int{32, 32}},
		{64, []int{0, 0, 0}, []int{22, 21, 21}},
		{64, []int{21, 21, 22}, []int{21, 21, 22}}, // who has one more keeps it
		{64, []int{20, 22, 22}, []int{21, 22, 21}},
		{4, []int{0, 1, 1, 0, 1, 1}, []int{0, 1, 1, 0, 1, 1}},
		{4, []int{0, 0, 0, 0, 0, 0}, []int{1, 1, 1, 1, 0, 0}},
	} {
		d := divide(c.shards, c.held...)
		var got []int
		for i := range c.held {
			got = append(got, d.quotas()[fmt.Sprintf("pod%02d/1", i)])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("quotas of %v: %v, want %v", c.held, got, c.want)
		}
		if slices.Min(got) != d.floor() || slices.Max(got) != d.ceil() {
			t.Errorf("quotas of %v: %v, floor %d, ceil %d", c.held, got, d.floor(), d.ceil())
		}
	}
	if d := divide(64); d.floor() != 0 || d.ceil() != 0 || len(d.wish([]int{1})) != 0 {
		t.Error("a pool without members divides something")
	}
}

func all(n int) []int {
	shards := make([]int, n)
	for i := range shards {
		shards[i] = i
	}
	return shards
}

func TestEveryFreeShardIsWishedByOneMemberWithinItsQuota(t *testing.T) {
	for members := 1; members <= 12; members++ {
		held := make([]int, members)
		held[members/2] = 3
		d := divide(64, held...)
		wish := d.wish(all(61))
		load := map[string]int{}
		for _, s := range all(61) {
			load[wish[s]]++
		}
		quotas := d.quotas()
		for m, q := range quotas {
			if load[m]+d.held[m] != q {
				t.Errorf("%d members: %s gets %d of %d", members, m, load[m]+d.held[m], q)
			}
		}
		if load[""] != 0 {
			t.Errorf("%d members: nobody wishes %d shards", members, load[""])
		}
	}
}

// A pod that starts again wishes what it had, and one that comes takes little from what the others wish of each other.
func TestWishesStayWithTheMembersName(t *testing.T) {
	first, again := divide(64, 0, 0, 0), division{shards: 64, held: map[string]int{"pod00/2": 0, "pod01/1": 0, "pod02/9": 0}}
	a, b := first.wish(all(64)), again.wish(all(64))
	for s := range 64 {
		if memberName(a[s]) != memberName(b[s]) {
			t.Errorf("shard %d goes from %s to %s", s, a[s], b[s])
		}
	}
	more := divide(64, 0, 0, 0, 0).wish(all(64))
	moved := 0
	for s := range 64 {
		if more[s] != a[s] && more[s] != "pod03/1" {
			moved++
		}
	}
	if moved > 16 {
		t.Errorf("%d shards move between the old members because one came", moved)
	}
}
