package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// screen is a terminal that is drawn over in place.
type screen struct{ restore func() }

// openScreen takes the terminal. quit is called when somebody types q or Ctrl-C.
func openScreen(quit func()) (*screen, error) {
	s := &screen{restore: func() {}}
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		before, err := term.MakeRaw(in)
		if err != nil {
			return nil, err
		}
		s.restore = func() { _ = term.Restore(in, before) }
		go readKeys(quit) // it ends with the process: a read of a terminal cannot be called off
	}
	fmt.Print("\033[?1049h\033[?25l") // the other screen, so that what was there comes back; no cursor
	return s, nil
}

func readKeys(quit func()) {
	key := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(key); err != nil || n == 1 && (key[0] == 'q' || key[0] == 3) { // 3: Ctrl-C, which a raw terminal hands through
			quit()
			return
		}
	}
}

func (s *screen) close() {
	fmt.Print("\033[?25h\033[?1049l")
	s.restore()
}

// draw shows a look in what room there is now.
func (s *screen) draw(l topLook, server string) error {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	lines := l.lines(server, width-1) // a line that ends in the last column would lose its end to what clears the rest of it
	_, err = fmt.Print("\033[H" + strings.Join(lines[:min(len(lines), height)], "\033[K\r\n") + "\033[K\033[J")
	return err
}

// lines are a look for people, none longer than width: what matters most first, since a low terminal cuts the end.
func (l topLook) lines(server string, width int) []string {
	head := []string{"rendezvous", server}
	if l.Version != "" {
		head = append(head, l.Version, l.Store)
	}
	var out []string
	add := func(lines ...string) {
		for _, line := range lines {
			out = append(out, cut(line, width))
		}
	}
	add(strings.Join(append(head, l.At.UTC().Format(time.TimeOnly), "q ends"), "  "))
	if l.Verdict != "" {
		add(strings.ToUpper(l.Verdict))
	}
	if l.Error != "" {
		add(wrap("NOT REACHED, trying again: "+l.Error, "", width)...)
	}
	for _, reason := range l.Reasons {
		add(wrap(reason, "  ", width)...)
	}
	switch {
	case l.Depths != nil:
		add("")
		add(l.depths()...)
	case l.Version != "":
		add("", "depths are for operators: the token has a lesser role")
	}
	add("")
	if l.Counts != nil {
		add(l.rates()...)
	}
	if len(l.Passes) > 0 {
		add("")
		add(l.passes()...)
	}
	for _, u := range l.Unread {
		add(wrap("metrics not read: "+u, "", width)...)
	}
	if l.Counts == nil {
		add(wrap("rates and passes are not known: name the admin address of each process with --metrics", "", width)...)
	}
	return out
}

// topDepths are the kinds of live rows, in the order in which they are shown.
var topDepths = []struct {
	kind, name string
	of         func(*wire.Depths) int
}{
	{"live_events", "live events", func(d *wire.Depths) int { return d.LiveEvents }},
	{"open_waits", "open waits", func(d *wire.Depths) int { return d.OpenWaits }},
	{"parked_waits", "parked waits", func(d *wire.Depths) int { return d.ParkedWaits }},
	{"quarantined_waits", "quarantined waits", func(d *wire.Depths) int { return d.QuarantinedWaits }},
	{"woken", "woken runs", func(d *wire.Depths) int { return d.Woken }},
	{"timers", "timers", func(d *wire.Depths) int { return d.Timers }},
	{"due_timers", "due timers", func(d *wire.Depths) int { return d.DueTimers }},
	{"due_pushes", "due registrations", func(d *wire.Depths) int { return d.DuePushes }},
	{"failing_pushes", "failing registrations", func(d *wire.Depths) int { return d.FailingPushes }},
	{"parked_pushes", "parked registrations", func(d *wire.Depths) int { return d.ParkedPushes }},
	{"dead_letters", "dead letters", func(d *wire.Depths) int { return d.DeadLetters }},
}

func (l topLook) depths() []string {
	t := table{heads: []string{"LIVE", "ROWS", "OLDEST", ""}}
	for _, d := range topDepths {
		n := d.of(l.Depths)
		rows, more := fmt.Sprint(n), ""
		if l.Depths.Capped && n >= store.DepthCap {
			rows += " or more"
		}
		if d.kind == "dead_letters" {
			more = deadText(l.Depths.Dead)
		}
		t.add(d.name, rows, ageText(l.Oldest, d.kind), more)
	}
	return t.lines()
}

func deadText(dead map[rendezvous.DeadReason]int) string {
	var parts []string
	for _, reason := range rendezvous.DeadReasons {
		if n := dead[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", reason, n))
		}
	}
	return strings.Join(parts, ", ")
}

// maxAge is in seconds about what a [time.Duration] holds.
const maxAge = 9e9

func ageText(ages map[string]float64, kind string) string {
	age, known := ages[kind]
	if !known {
		return "-"
	}
	return time.Duration(min(age, maxAge) * float64(time.Second)).Round(time.Second).String()
}

// rates are how fast events and runs go through.
func (l topLook) rates() []string {
	t := table{heads: []string{"A SECOND"}}
	row := []any{"now"}
	for _, name := range topCounts {
		t.heads = append(t.heads, strings.ToUpper(name))
		row = append(row, number(l.Rates, name, 1))
	}
	t.add(row...)
	return t.lines()
}

// passes are how busy the sweepers are: a pass is saturated whose pages leave more to do.
func (l topLook) passes() []string {
	t := table{heads: []string{"PASS", "ROWS/S", "PAGES/S", "SATURATED", "FAILED/S", "BUSY", "OLDEST DUE"}}
	for _, p := range l.Passes {
		full := "-"
		if pages := p.Rates["pages"]; pages > 0 {
			full = fmt.Sprintf("%.0f%%", 100*p.Rates["saturated"]/pages)
		}
		busy := number(p.Rates, "busy", 100)
		if busy != "-" {
			busy += "%"
		}
		t.add(p.Pass, number(p.Rates, "rows", 1), number(p.Rates, "pages", 1), full, number(p.Rates, "failed", 1), busy,
			ageText(map[string]float64{"": p.OldestDue}, ""))
	}
	return t.lines()
}

func number(of map[string]float64, name string, times float64) string {
	n, known := of[name]
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.1f", n*times)
}

// text is a look on one line.
func (l topLook) text() string {
	parts := []string{clockTime(l.At.Time)}
	if l.Verdict != "" {
		parts = append(parts, l.Verdict)
	}
	if l.Error != "" {
		parts = append(parts, "not reached: "+l.Error)
	}
	if l.Depths != nil {
		for _, d := range topDepths {
			parts = append(parts, fmt.Sprintf("%s=%d", d.kind, d.of(l.Depths)))
			if _, known := l.Oldest[d.kind]; known {
				parts = append(parts, "oldest="+ageText(l.Oldest, d.kind))
			}
		}
	}
	for _, name := range topCounts {
		if n := number(l.Rates, name, 1); n != "-" {
			parts = append(parts, name+"/s="+n)
		}
	}
	line := strings.Join(parts, "  ")
	for _, reason := range slices.Concat(l.Reasons, l.Unread) {
		line += "  | " + reason
	}
	return plain(line)
}

// wrap breaks a text between words; the lines behind the first stand two further in.
func wrap(text, indent string, width int) []string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(plain(text)) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = indent + "  " + word
		}
	}
	return append(lines, line)
}

func cut(line string, width int) string {
	runes := []rune(plain(line))
	return strings.TrimRight(string(runes[:min(len(runes), width)]), " ")
}

// plain takes away what a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
