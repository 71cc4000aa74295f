package fair

import (
	"slices"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Find is an event that a walk found left apart, and the place of the row that led to it.
type Find struct {
	backend.Place
	Tenant string
	Event  int64
}

// Look is what one walk of [backend.News] found, where it ended, and whether that was its bound, with more behind.
type Look struct {
	Finds []Find
	End   backend.Place
	Cut   bool
}

// News chooses limit of the events that the walks found, as [Numbers] does. It answers their numbers, and the page without its rows.
func News(walks *[backend.NewsWalks]Look, limit int) (numbers []int64, page backend.NewsPage) {
	due := map[string][]int64{}
	for _, w := range walks {
		for _, f := range w.Finds {
			due[f.Tenant] = append(due[f.Tenant], f.Event)
		}
	}
	for tenant, own := range due {
		slices.Sort(own)
		due[tenant] = slices.Compact(own)
	}
	numbers, _ = Numbers(due, limit)
	for i, w := range walks {
		page.Next[i] = w.End
		page.More = page.More || w.Cut
		slices.SortFunc(w.Finds, func(a, b Find) int { return a.Compare(b.Place) })
		left := slices.IndexFunc(w.Finds, func(f Find) bool { _, placed := slices.BinarySearch(numbers, f.Event); return !placed })
		if left >= 0 {
			page.Next[i], page.More = w.Finds[left].Before(), true
		}
	}
	return numbers, page
}
