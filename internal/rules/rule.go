package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number names a rule: EV-12.
type number struct {
	prefix string
	n      int
}

func (n number) String() string { return n.prefix + "-" + strconv.Itoa(n.n) }

// rule is one testable behaviour of a contract.
type rule struct {
	number
	text   string
	second bool // marked [S2]: owed only when an issue asks for it
}

// prefixes are the kinds of rules, in the order in which a reader meets the contracts.
var prefixes = []string{"EV", "RN", "HI", "TM", "SW", "SH", "PU"}

var ruleLine = regexp.MustCompile(`^- (` + strings.Join(prefixes, "|") + `)-([0-9]+) (.*)`)

// readRules reads the lists of testable behaviours in docs/spec, ordered by prefix and number.
func readRules(root string) ([]rule, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "spec", "*.md"))
	if err != nil {
		return nil, err
	}
	var rules []rule
	seen := map[number]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, r := range parseRules(string(text)) {
			if other, ok := seen[r.number]; ok {
				return nil, fmt.Errorf("%s stands in both %s and %s", r.number, other, file)
			}
			seen[r.number] = file
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("no rule in %s", filepath.Join(root, "docs", "spec"))
	}
	slices.SortFunc(rules, func(a, b rule) int { return compare(a.number, b.number) })
	return rules, nil
}

func parseRules(text string) []rule {
	var rules []rule
	for line := range strings.Lines(text) {
		m := ruleLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			continue // more digits than a number has: no rule
		}
		rest, second := strings.CutPrefix(m[3], "[S2] ")
		rules = append(rules, rule{number: number{m[1], n}, text: rest, second: second})
	}
	return rules
}

func compare(a, b number) int {
	if a.prefix != b.prefix {
		return slices.Index(prefixes, a.prefix) - slices.Index(prefixes, b.prefix)
	}
	return a.n - b.n
}
