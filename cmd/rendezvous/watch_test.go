package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// A watched command shows again what it shows, for programs a line each, also where what it shows is bad, until it is interrupted.
func TestWatchedCommandsShowAgain(t *testing.T) {
	u := buried(t, "p-1")
	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	u.ok("waiting", "wait", "register", "r", "pay", "--type", "paid")
	for _, args := range [][]string{
		{"system", "check"},
		{"event", "explain", "urn:bank", "p-1"},
		{"wait", "explain", "r", "pay"},
		{"wait", "explain", "r", "pay", "--source", "urn:bank", "--id", "p-1"},
		{"deadletter", "list"},
		{"deadletter", "count"},
		{"wait", "list"},
		{"shard", "list"},
	} {
		t.Run(args[0]+" "+args[1], func(t *testing.T) {
			t.Parallel()
			cmd := nodetest.Command(t, u.env, append(args, "--watch", "-o", "jsonl")...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for range 2 {
				if !lines.Scan() || !json.Valid(lines.Bytes()) {
					t.Fatalf("a line is %q (%v)", lines.Text(), lines.Err())
				}
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // what it was about to show
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
		})
	}
}
