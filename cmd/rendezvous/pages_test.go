package main

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// pageOf is a list of rows 0 to 9,999 whose pages look at ten of them; only multiples of every pass.
func pageOf(every int, asked *[]int) func(limit int, cursor string) ([]int, string, error) {
	return func(limit int, cursor string) (rows []int, next string, err error) {
		*asked = append(*asked, limit)
		at, _ := strconv.Atoi(cursor)
		if limit == 0 {
			limit = 100
		}
		for looked := 0; looked < 10 && at < 10_000; looked++ {
			if at%every == 0 {
				if len(rows) == limit {
					break
				}
				rows = append(rows, at)
			}
			at++
		}
		if at < 10_000 {
			next = fmt.Sprint(at)
		}
		return rows, next, nil
	}
}

// A short page, even an empty one, is not the end: a list is walked on until it has what was asked for, ends, or a hundred pages were read.
func TestAListIsWalkedUntilItIsFull(t *testing.T) {
	for _, c := range []struct {
		limit, every int
		cursor       string
		rows         []int
		next         string
		pages        int
	}{
		{3, 1, "", []int{0, 1, 2}, "3", 1},
		{3, 25, "", []int{0, 25, 50}, "60", 6},
		{3, 2_000, "9900", nil, "", 10},
		{2, 20_000, "1", nil, "1001", 100},
		{0, 100, "9000", []int{9000, 9100, 9200, 9300, 9400, 9500, 9600, 9700, 9800, 9900}, "", 100},
	} {
		var asked []int
		rows, next, err := walk(c.limit, c.cursor, pageOf(c.every, &asked))
		if err != nil || !slices.Equal(rows, c.rows) || next != c.next || len(asked) != c.pages || asked[0] != c.limit {
			t.Errorf("%+v: %v, %q, %d pages, %v", c, rows, next, len(asked), err)
		}
	}
	if _, _, err := walk(1, "", func(int, string) ([]int, string, error) { return nil, "", fmt.Errorf("away") }); err == nil {
		t.Error("an error was lost")
	}
}
