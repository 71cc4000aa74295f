package main

import (
	"fmt"
	"os"
	"strings"
)

// allowance maps what may skip, as "package test", to the reason.
type allowance map[string]string

// readSkips reads the file of allowed skips; no name, no skips.
func readSkips(file string) (allowance, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the list of allowed skips: %w", err)
	}
	return parseSkips(file, string(text))
}

func parseSkips(file, text string) (allowance, error) {
	allowed := allowance{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case len(fields) < 3:
			return nil, fmt.Errorf("%s:%d: want a package, a test and the reason why it may skip", file, n)
		default:
			allowed[fields[0]+" "+fields[1]] = strings.Join(fields[2:], " ")
		}
	}
	return allowed, nil
}
