package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// table is rows under headings, for people.
type table struct {
	heads []string
	rows  [][]string
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) print() { t.write(os.Stdout) }

// lines are the table's, its heads first.
func (t *table) lines() []string {
	var b strings.Builder
	t.write(&b)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func (t *table) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(t.heads, "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush()
}

// show prints a reply: as the table of people, as one JSON value, or each of its rows as a JSON line.
func show[R any](r *remote, reply any, rows []R, people func()) error {
	switch r.Output {
	case "json":
		return printJSON(reply, "  ")
	case "jsonl":
		if rows == nil {
			return printJSON(reply, "")
		}
		for _, row := range rows {
			if err := printJSON(row, ""); err != nil {
				return err
			}
		}
		return nil
	}
	people()
	return nil
}

func printJSON(v any, indent string) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

// watched is the flag of commands that can be looked at again and again.
type watched struct {
	Watch bool `short:"w" help:"Show again every two seconds."`
}

// watching repeats a command every two seconds, where that is asked, until it is interrupted: on a cleared screen where people look on.
func (w watched) watching(ctx context.Context, r *remote, once func(ctx context.Context) error) error {
	if !w.Watch {
		return once(ctx)
	}
	tick := clock.System.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		if r.Output == "table" && terminal(os.Stdout) {
			fmt.Print("\033[H\033[2J")
		}
		if err := once(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// terminal reports whether somebody looks on.
func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// confirm asks for a typed word before what cannot be undone.
func confirm(what, word string) error {
	fmt.Fprintf(os.Stderr, "%s\nThis cannot be undone. Type %s to go on: ", what, word)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimSpace(line) != word {
		return rendezvous.InvalidField("confirmation", "not given; nothing was done (--yes skips the question)")
	}
	return nil
}

// keysOf reads --key flags, namespace=value each.
func keysOf(flags []string) ([]rendezvous.Key, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	keys, err := cloudevents.ParseKeys("key", strings.Join(flags, ","))
	for _, k := range keys {
		if k.Namespace != strings.TrimSpace(k.Namespace) || k.Value != strings.TrimSpace(k.Value) {
			hint("the key %q has blanks at its ends, which count: it meets only a key with the same ones", k) // R4
		}
	}
	return keys, err
}

// hint tells of what is allowed and seldom meant, beside the output.
func hint(format string, args ...any) { fmt.Fprintf(os.Stderr, "hint: "+format+"\n", args...) }

func keyList(keys []rendezvous.Key) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.String()
	}
	return strings.Join(parts, " ")
}

// dataOf reads a --data, --input or --result flag: JSON, @file, or - for standard input; nil when it is not given.
func dataOf(flag string) ([]byte, error) {
	switch {
	case flag == "":
		return nil, nil
	case flag == "-":
		return readAll(os.Stdin)
	case strings.HasPrefix(flag, "@"):
		f, err := os.Open(flag[1:])
		if err != nil {
			return nil, rendezvous.InvalidField("data", "the file cannot be read: %v", err)
		}
		defer f.Close()
		return readAll(f)
	}
	return []byte(flag), nil
}

func clockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}
