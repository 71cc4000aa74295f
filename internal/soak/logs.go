package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// alarming is what no worker may say, whatever is done to it: errors are what an operator has to look at, trouble that passes by itself is a warning.
var alarming = regexp.MustCompile(`level=ERROR|corrupt|panic|DATA RACE|fatal error`)

// beyond is what the NATS server says of a stream that was deleted while it was made, and whose new files it removed with the old ones. The plane goes on by its
// passes until the stream is made anew.
var beyond = regexp.MustCompile(`(msg block file|message block data missing).* component=nats-server`)

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

// onTime are the pods that do not say that their clocks are off: then the soak shows nothing about clocks.
func (p *plane) onTime() (found []error) {
	if p.embedded {
		return nil
	}
	for _, w := range p.pods() {
		if text, err := os.ReadFile(w.log); err != nil || !bytes.Contains(text, []byte("its clock is off by")) {
			found = append(found, fmt.Errorf("the clock of %s is not off: %w", w.name, cmp.Or(err, errors.New("its log says nothing of it"))))
		}
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
		if alarming.Match(lines.Bytes()) && !beyond.Match(lines.Bytes()) {
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
