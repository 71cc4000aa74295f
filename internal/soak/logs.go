package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// alarming is what no worker may say, whatever is done to it: errors are what an operator has to look at, trouble that passes by itself is a warning.
var alarming = regexp.MustCompile(`level=ERROR|corrupt|panic|DATA RACE|fatal error`)

// alarms are the first alarming lines of every log.
func (p *plane) alarms() (found []error) {
	logs, err := filepath.Glob(filepath.Join(p.folder, "*.log"))
	if err != nil {
		return []error{err}
	}
	for _, log := range logs {
		found = append(found, alarmsOf(log)...)
	}
	return found
}

func alarmsOf(log string) (found []error) {
	file, err := os.Open(log)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return []error{err}
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if alarming.Match(lines.Bytes()) {
			if found = append(found, fmt.Errorf("%s:%d: %.300s", filepath.Base(log), n, lines.Text())); len(found) == shown {
				return found
			}
		}
	}
	if err := lines.Err(); err != nil {
		found = append(found, err)
	}
	return found
}
