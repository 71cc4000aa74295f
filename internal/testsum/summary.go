package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of what is built; only in build-output and build-fail
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// counts of tests, subtests and their parents alike, as go test reports them.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

// pack is a package whose tests run.
type pack struct {
	counts
	output map[string]*strings.Builder // of each test that has not passed; "" is the package's own
}

type summary struct {
	out        io.Writer
	allowed    allowance
	running    map[string]*pack
	builds     map[string]*strings.Builder
	total      counts
	unexpected int // skips that nobody allowed
}

func newSummary(out io.Writer, allowed allowance) *summary {
	return &summary{out: out, allowed: allowed, running: map[string]*pack{}, builds: map[string]*strings.Builder{}}
}

// read works until the input ends. A line that is not an event is shown as it is: go test says there what it could not put into one.
func (s *summary) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			s.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the output of go test: %w", err)
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(s.out, "%s\n", bytes.TrimSpace(line))
		return
	}
	switch {
	case e.Action == "build-output":
		buffer(s.builds, e.ImportPath).WriteString(e.Output)
	case e.Action == "build-fail":
		s.show(s.builds[e.ImportPath])
	case e.Test == "":
		s.packageEvent(e)
	default:
		s.testEvent(e)
	}
}

func (s *summary) packageEvent(e event) {
	p := s.pack(e.Package)
	switch e.Action {
	case "output":
		buffer(p.output, "").WriteString(e.Output)
	case "pass", "skip", "fail":
		s.end(e, p)
	}
}

// end reports a package. One that fails though none of its tests did (it was not built, its TestMain refused, it timed out) counts as one failure.
func (s *summary) end(e event, p *pack) {
	delete(s.running, e.Package)
	verdict := "ok  "
	if e.Action == "fail" {
		verdict = "FAIL"
		if p.failed == 0 {
			p.failed++
		}
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			s.show(p.output[test])
		}
	}
	s.total.add(p.counts)
	if p.counts == (counts{}) {
		return // no tests in it
	}
	fmt.Fprintf(s.out, "%s %-44s %5d passed %3d failed %3d skipped %8.1fs\n",
		verdict, short(e.Package), p.passed, p.failed, p.skipped, e.Elapsed)
}

func (s *summary) testEvent(e event) {
	p := s.pack(e.Package)
	switch e.Action {
	case "output":
		buffer(p.output, e.Test).WriteString(e.Output)
	case "pass":
		p.passed++
		delete(p.output, e.Test)
	case "fail":
		p.failed++ // its output is shown with the package's end, beside that of what it ran with
	case "skip":
		p.skipped++
		s.skip(e, p)
	}
}

func (s *summary) skip(e event, p *pack) {
	reason, ok := s.allowed[short(e.Package)+" "+e.Test]
	if ok {
		fmt.Fprintf(s.out, "skip %s %s: allowed: %s\n", short(e.Package), e.Test, reason)
	} else {
		s.unexpected++
		fmt.Fprintf(s.out, "SKIP %s %s: not on the list of allowed skips\n", short(e.Package), e.Test)
		s.show(p.output[e.Test])
	}
	delete(p.output, e.Test)
}

// close reports packages that never ended, which happens when go test is killed, and the counts alone on the last line.
func (s *summary) close() error {
	cut := len(s.running)
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		s.end(event{Action: "fail", Package: name}, s.running[name])
	}
	var errs []error
	if cut > 0 {
		errs = append(errs, fmt.Errorf("the output ends before %d packages do", cut))
	}
	if s.total.failed > 0 {
		errs = append(errs, errors.New("tests failed"))
	}
	if s.unexpected > 0 {
		errs = append(errs, fmt.Errorf("%d tests skipped that are not on the list of allowed skips", s.unexpected))
	}
	if s.total == (counts{}) {
		errs = append(errs, errors.New("no test ran"))
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.total.passed, s.total.failed, s.total.skipped)
	return errors.Join(errs...)
}

func (s *summary) pack(name string) *pack {
	p := s.running[name]
	if p == nil {
		p = &pack{output: map[string]*strings.Builder{}}
		s.running[name] = p
	}
	return p
}

func (s *summary) show(output *strings.Builder) {
	if output != nil {
		fmt.Fprint(s.out, output)
	}
}

func buffer(in map[string]*strings.Builder, name string) *strings.Builder {
	b := in[name]
	if b == nil {
		b = &strings.Builder{}
		in[name] = b
	}
	return b
}

// short is the package's folder: the import path without the module's, which is the same in all.
func short(pkg string) string {
	const module = "github.com/rendezvous-events/rendezvous"
	if rest, ok := strings.CutPrefix(pkg, module+"/"); ok {
		return "./" + rest
	}
	if pkg == module {
		return "."
	}
	return pkg
}
