package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

type report struct {
	rules []rule
	cited citations
}

// table prints every rule that is cited, with the places.
func (r report) table(out io.Writer) {
	for _, rule := range r.rules {
		for i, place := range r.cited[rule.number] {
			label := rule.String()
			if i > 0 {
				label = ""
			}
			fmt.Fprintf(out, "%-7s %s\n", label, place)
		}
	}
}

// without prints the rules that nothing cites.
func (r report) without(out io.Writer) {
	fmt.Fprintln(out, "\nWithout a test:")
	for _, rule := range r.rules {
		if len(r.cited[rule.number]) == 0 {
			fmt.Fprintf(out, "%-7s %s%s\n", rule.number, mark(rule), cut(rule.text, 120))
		}
	}
}

func mark(r rule) string {
	if r.second {
		return "[S2] "
	}
	return ""
}

// cut shortens to n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// tally counts the rules of one prefix, and apart those of the second step.
type tally struct{ rules, cited, second, secondCited int }

func (t *tally) add(o tally) {
	t.rules += o.rules
	t.cited += o.cited
	t.second += o.second
	t.secondCited += o.secondCited
}

// totals prints a line per prefix. What is owed now and what is marked [S2] are counted apart.
func (r report) totals(out io.Writer) {
	of := map[string]tally{}
	for _, rule := range r.rules {
		has := 0
		if len(r.cited[rule.number]) > 0 {
			has = 1
		}
		t := of[rule.prefix]
		if rule.second {
			t.add(tally{second: 1, secondCited: has})
		} else {
			t.add(tally{rules: 1, cited: has})
		}
		of[rule.prefix] = t
	}
	fmt.Fprintf(out, "\n%-6s%8s%8s%10s%14s\n", "", "rules", "cited", "without", "[S2] cited")
	var all tally
	for _, prefix := range prefixes {
		line(out, prefix, of[prefix])
		all.add(of[prefix])
	}
	line(out, "all", all)
}

func line(out io.Writer, name string, t tally) {
	fmt.Fprintf(out, "%-6s%8d%8d%10d%14s\n", name, t.rules, t.cited, t.rules-t.cited, fmt.Sprintf("%d of %d", t.secondCited, t.second))
}

// unknown complains of citations of numbers that no contract has.
func (r report) unknown() error {
	known := map[number]bool{}
	for _, rule := range r.rules {
		known[rule.number] = true
	}
	var wrong []string
	for _, n := range slices.SortedFunc(maps.Keys(r.cited), compare) {
		if !known[n] {
			wrong = append(wrong, fmt.Sprintf("%s (%s)", n, strings.Join(r.cited[n], ", ")))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("cited, but in no contract: %s", strings.Join(wrong, "; "))
	}
	return nil
}
