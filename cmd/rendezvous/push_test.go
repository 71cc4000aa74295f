package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// PU-8, PU-9, PU-23, PU-24: a registration by hand, from its making to its end, and nothing of a secret in what is printed.
func TestRegistrationsByHand(t *testing.T) {
	u := newTool(t, func(c *node.Config) { c.Targets, c.Push = node.Targets{CallerHosts: []string{"example.org"}}, nil })
	if err := os.WriteFile(filepath.Join(u.dir, "secret"), []byte("planted-credentials\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.ok(`^started`, "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	printed := u.ok(`^registered  run r  id push-r  version 1: live at record 1`, "push", "put", "r", "https://example.org/hook", "--next-seq", "1", "--receiver-token", "planted-token",
		"--scheme", "Bearer", "--credentials", "@secret", "--header", "X-Shop=planted=header", "--key", hookKey, "--events", "run.completed,run.started", "--timeout", "5s")
	printed += u.ok(`(?s)url +https://example.org/hook.*state +live at record 1.*events +run.completed run.started.*timeout +5s.*auth +scheme Bearer.*token +set.*headers +X-Shop.*key +key-`, "push", "get", "r")
	printed += u.ok(`(?s)^ID.*push-r +live +1 `, "push", "list", "r")
	printed += u.ok(`^\{.*"token_set":true.*\}\n$`, "push", "list", "r", "-o", "jsonl")
	printed += u.ok(`"next_seq": 1`, "push", "get", "r", "-o", "json")
	printed += u.ok(`version 2`, "push", "put", "r", "https://example.org/other", "--fields", "url", "--if-version", "1")
	u.fails(4, `conflict.*version 2`, "push", "put", "r", "https://example.org/other", "--fields", "url", "--if-version", "1")
	u.ok(`^parked`, "push", "park", "r", "--reason", "maintenance")
	printed += u.ok(`(?s)REASON.*operator +r +push-r +1 .*: maintenance`, "push", "parked")
	u.ok(`^\{"run_id":"r"`, "push", "parked", "--parked-for", "operator", "-o", "jsonl")
	u.fails(4, `conflict`, "push", "skip", "r", "--seq", "9", "--yes")
	u.ok(`^skipped: it is at record 2`, "push", "skip", "r", "--seq", "1", "--reason", "broken", "--yes")
	u.ok(`(?s)OUTCOME.*1 +.* +1 +skipped .*: broken`, "push", "attempts", "r")
	u.ok(`^unparked`, "push", "unpark", "r", "--op", "once")
	u.ok(`^unparked`, "push", "unpark", "r", "--op", "once")
	u.fails(4, `not parked`, "push", "unpark", "r")
	u.ok(`^parked`, "push", "park", "r")
	u.ok(`^1 unparked`, "push", "unpark", "--gate", "https://example.org:443", "--spread", "1m")
	u.fails(2, `is to be reached by https; .*--push-caller-hosts 127.0.0.1 --push-dev-loopback\n$`, "push", "put", "r", "http://127.0.0.1:8787/planted", "--id", "here")
	for _, args := range [][]string{
		{"push", "unpark"},
		{"push", "unpark", "r", "--all"},
		{"push", "put", "r", "https://example.org/", "--header", "X"},
		{"push", "put"},
		{"push", "skip", "r"},
		{"push", "put", "r", "https://example.org/", "--registration", "planted"},
		{"push", "put", "r", "https://example.net/planted"},
		{"push", "listen", "--addr", "0.0.0.0:0"},
		{"push", "listen", "--key", "planted"},
		{"push", "listen", "--status", "99"},
	} {
		r := u.run(args...)
		if r.code != 2 || strings.Contains(r.err, "planted") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
	}
	if made := u.ok(`(?s)^key-\S+ v1 signs.*\nwhsec_\S+\n$`, "push", "rotate", "r", "--grace", "1h"); strings.Contains(made, hookKey) {
		t.Errorf("a rotation shows the older key: %s", made)
	}
	u.stdin = "no\n"
	u.fails(2, `nothing was done`, "push", "delete", "r")
	u.ok(`^deleted`, "push", "delete", "r", "--yes")
	u.fails(3, `not_found`, "push", "get", "r")
	u.ok(`"push"\|.*words="put get list delete park`, "completion", "bash")
	if regexp.MustCompile(`planted|` + hookKey).MatchString(printed) {
		t.Errorf("a secret is printed: %s", printed)
	}
}

// PU-65, PU-68, PU-74, PU-93: a receiver on this machine verifies what the plane sends; while it fails, the plane tries again, and then parks.
func TestListenReceivesAndFails(t *testing.T) {
	u := newTool(t, func(c *node.Config) {
		c.Targets = node.Targets{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true}
	})
	listen := func(args ...string) (url string, lines <-chan string) {
		cmd := nodetest.Command(t, u.env, append([]string{"push", "listen", "--addr", "127.0.0.1:0", "--key", hookKey}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		text := bufio.NewScanner(out)
		if !text.Scan() {
			t.Fatal("it does not listen")
		}
		banner := text.Text()
		all := make(chan string, 100)
		go func() {
			defer close(all)
			for text.Scan() {
				all <- text.Text()
			}
		}()
		return regexp.MustCompile(`http://\S+\d`).FindString(banner), all
	}
	u.ok(`^started`, "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	url, lines := listen("--fail-first", "1", "--status", "500", "--count", "2")
	u.ok(`^registered`, "push", "put", "r", url+"/in", "--next-seq", "1", "--key", hookKey)
	for _, want := range []string{`verified +500 +attempt 1 +rendezvous.run.started +r/1/0`, `"type":"rendezvous.run.started"`, `verified +200 +attempt 2 +rendezvous.run.started +r/1/0`} {
		if line := <-lines; !regexp.MustCompile(want).MatchString(line) {
			t.Fatalf("it prints %q, not %s", line, want)
		}
	}
	for range lines { // it ends by itself
	}
	url, _ = listen("--status", "500")
	u.ok(`^registered`, "push", "put", "r", url+"/in", "--id", "second", "--next-seq", "1", "--max-attempts", "1", "--key", hookKey)
	u.eventually(`exhausted +r +second +1 +1 `, "push", "parked")
}
