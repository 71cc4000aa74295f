package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rendezvous-events/rendezvous/store/move"
)

// progress shows how far a copy got: a bar for each kind of row on a terminal, a line now and then elsewhere.
type progress struct {
	out   *os.File
	bars  bool
	bar   *progressbar.ProgressBar
	now   move.Progress
	told  time.Time // of the last line
	began bool
}

// lineEvery is how often a kind of many rows gets a line where there is no terminal.
const lineEvery = 5 * time.Second

func newProgress(out *os.File) *progress {
	return &progress{out: out, bars: terminal(out)}
}

// show is told of every step.
func (p *progress) show(at move.Progress) {
	if !p.began || at.Step != p.now.Step || at.Kind != p.now.Kind {
		p.end()
		p.begin(at)
	}
	p.now = at
	switch {
	case p.bars:
		if at.Done == 0 {
			return
		}
		if p.bar == nil {
			p.bar = newBar(p.out, at)
		}
		if at.Done > p.bar.GetMax64() && p.bar.GetMax64() > 0 { // there were more than about
			p.bar.ChangeMax64(at.Done)
		}
		_ = p.bar.Set64(at.Done) // a terminal that takes nothing
	case time.Since(p.told) >= lineEvery:
		p.line()
	}
}

func (p *progress) begin(at move.Progress) {
	p.began, p.told = true, time.Now()
	if at.Resumed && at.Done > 0 {
		fmt.Fprintf(p.out, "%s: %d rows were copied before\n", at.Kind, at.Done)
	}
}

func newBar(out *os.File, at move.Progress) *progressbar.ProgressBar {
	of := at.Of
	if of <= 0 {
		of = -1 // not known
	}
	return progressbar.NewOptions64(of, progressbar.OptionSetDescription(fmt.Sprintf("%s, %s", at.Step, at.Kind)),
		progressbar.OptionSetWriter(out), progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
		progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetSpinnerChangeInterval(0))
}

func (p *progress) line() {
	p.told = time.Now()
	of := ""
	if p.now.Of > 0 {
		of = fmt.Sprintf(" of about %d", max(p.now.Of, p.now.Done))
	}
	fmt.Fprintf(p.out, "%s, %s: %d%s\n", p.now.Step, p.now.Kind, p.now.Done, of)
}

// end ends what is shown of a kind.
func (p *progress) end() {
	switch {
	case p.bar != nil:
		_ = p.bar.Exit()
		fmt.Fprintln(p.out)
		p.bar = nil
	case p.began && !p.bars:
		fmt.Fprintf(p.out, "%s, %s: %d\n", p.now.Step, p.now.Kind, p.now.Done)
	}
}
