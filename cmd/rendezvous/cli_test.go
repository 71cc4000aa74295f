package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m, main) }

// tool is the program with an environment of its own.
type tool struct {
	t     *testing.T
	env   []string
	dir   string // where it runs
	stdin string
}

// result is what a call of the tool came to.
type result struct {
	out, err string
	code     int
}

func newTool(t *testing.T, change ...func(*node.Config)) *tool {
	t.Helper()
	n := nodetest.Start(t, change...)
	return &tool{t: t, dir: t.TempDir(), env: []string{"RENDEZVOUS_SERVER=http://" + n.HTTP, "RENDEZVOUS_TENANT=acme", "HOME=" + t.TempDir(), "RENDEZVOUS_METRICS=http://" + n.Admin}}
}

func (u *tool) run(args ...string) result {
	u.t.Helper()
	cmd := nodetest.Command(u.t, u.env, args...)
	cmd.Stdin = strings.NewReader(u.stdin)
	if u.dir != "" {
		cmd.Dir = u.dir
	}
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if e := cmd.Run(); e != nil && !errors.As(e, &exit) {
		u.t.Fatal(e)
	}
	return result{out.String(), err.String(), cmd.ProcessState.ExitCode()}
}

// ok calls and expects success with an output that matches.
func (u *tool) ok(want string, args ...string) string {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 || !regexp.MustCompile(want).MatchString(r.out) {
		u.t.Fatalf("%v: exit code %d, output %q and %q do not match %s", args, r.code, r.out, r.err, want)
	}
	return r.out
}

// fails calls and expects that exit code with an error that matches.
func (u *tool) fails(code int, want string, args ...string) {
	u.t.Helper()
	r := u.run(args...)
	if r.code != code || !regexp.MustCompile(want).MatchString(r.err) {
		u.t.Errorf("%v: exit code %d, error %q; want %d and %s (output %q)", args, r.code, r.err, code, want, r.out)
	}
}

// What the welcome of `up` tells a newcomer to type, both ways round.
func TestWhatANewcomerTypes(t *testing.T) {
	u := newTool(t)
	u.ok(`^started +workflow order-1 +run run-1 +\(running\)`, "run", "start", "order", "--workflow-id", "order-1", "--run-id", "run-1")
	u.ok(`^was started before`, "run", "start", "order", "--workflow-id", "order-1", "--run-id", "run-1")
	u.ok(`^waiting since record 2`, "wait", "register", "run-1", "payment", "--type", "payment.received", "--key", "order=order-1")
	u.ok(`(?s)RUN +EFFECT.*run-1 +payment +open +payment.received +order=order-1`, "wait", "list")
	u.ok(`^accepted +urn:bank p-1`, "event", "put", "--type", "payment.received", "--source", "urn:bank", "--id", "p-1", "--key", "order=order-1", "--data", `{"amount": 12}`)
	u.eventually(`(?s)wait.registered.*wait.answered +payment .*\{"amount": 12\}`, "run", "history", "order-1")
	u.ok(`(?s)state +consumed.*record 3 of workflow order-1`, "event", "get", "urn:bank", "p-1")
	u.ok(`(?s)EVENT +urn:bank p-1.*verdict +delivered: it answered wait payment of run run-1, record 3.*what to do +nothing`, "event", "explain", "urn:bank", "p-1")
	u.ok(`(?s)WAIT +payment of run run-1.*verdict +answered: event urn:bank p-1`, "wait", "explain", "run-1", "payment")
	u.ok(`(?s)because +event_consumed \(wait payment of run run-1\).*because +wait_closed.*these two have met`, "event", "explain", "urn:bank", "p-1", "--run", "run-1", "--effect", "payment")
	u.ok(`"verdict": "unregistered"`, "wait", "explain", "run-1", "Payment", "-o", "json")
	u.ok(`what to do +did you mean payment\?`, "wait", "explain", "run-1", "Payment")
	u.ok(`^duplicate +urn:bank p-1 +\(consumed\)`, "event", "put", "--type", "payment.received", "--source", "urn:bank", "--id", "p-1", "--key", "order=order-1", "--data", `{"amount": 12}`)

	u.ok(`^accepted`, "event", "put", "--type", "parcel.delivered", "--source", "urn:post", "--id", "d-1", "--key", "order=order-1")
	u.ok(`^answered at record 5 by an event of urn:post`, "wait", "register", "run-1", "delivery", "--type", "parcel.delivered", "--key", "order=order-1")
	u.ok(`^waiting`, "wait", "register", "run-1", "never", "--type", "t")
	u.ok(`verdict +no_event`, "wait", "explain", "run-1", "never")
	u.ok(`^accepted`, "event", "put", "--type", "T", "--source", "urn:bank", "--id", "T-1", "--key", "order=1")
	u.ok(`^withdrawn at record 7`, "wait", "withdraw", "run-1", "never", "--reason", "no need")
	u.ok(`^nothing`, "wait", "withdraw", "run-1", "unheard")
	u.ok(`(?s)status +running.*records +7`, "run", "show", "order-1")
	u.ok(`(?s)status +running`, "run", "show", "--run", "run-1")
	u.ok(`^completed at record 8`, "run", "conclude", "run-1", "--result", `"done"`, "--yes")
	u.ok(`(?s)WORKFLOW.*order-1 +run-1 +order +completed +8`, "run", "list", "--status", "completed")
	u.ok(`^erased \(was consumed\); the answer stays in record 3`, "event", "erase", "urn:bank", "p-1", "--yes")
	u.ok(`^unknown`, "event", "erase", "urn:bank", "nobody", "-y")
	u.ok(`^closed: the run ended as completed before`, "run", "cancel", "run-1")
	u.ok(`store +memory`, "system", "info")
	u.ok(`^ok`, "system", "check")
	u.ok(`(?s)API +ok`, "doctor")
	u.ok(`^rendezvous \d`, "version")
}

// eventually repeats a call until its output matches: for what a worker does by itself.
func (u *tool) eventually(want string, args ...string) {
	u.t.Helper()
	var r result
	for range 200 {
		if r = u.run(args...); r.code == 0 && regexp.MustCompile(want).MatchString(r.out) {
			return
		}
	}
	u.t.Fatalf("%v: %q does not match %s", args, r.out, want)
}

// api.md section 5: 2 wrong usage, 3 not found, 4 conflict, 5 unavailable, 1 anything else.
func TestExitCodes(t *testing.T) {
	u := newTool(t)
	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	u.ok("", "event", "put", "--type", "t", "--source", "s", "--id", "1", "--data", "1")
	for _, args := range [][]string{
		{},
		{"dance"},
		{"run", "dance"},
		{"run", "show"},
		{"run", "show", "w", "--colour"},
		{"run", "list", "--limit", "many"},
		{"run", "show", "w", "-o", "xml"},
		{"event", "put"},
		{"event", "put", "--type", "t", "--data", "{"},
		{"event", "put", "--type", "t", "--data", "@/nonexistent"},
		{"event", "put", "--type", "t", "--key", "order"},
		{"event", "put", "--type", "t", "--expires", "soon"},
		{"event", "put", "--file", "/nonexistent"},
		{"event", "put", "--type", "t", "--file", "x"},
		{"event", "put", "--type", "rendezvous.x"},
		{"run", "list", "--limit", "1001"},
		{"run", "start", "t", "--tenant", "a.b"},
		{"run", "start", "t", "--server", "nonsense"},
		{"run", "start", "t", "--context", "unheard"},
		{"wait", "register", "r", "e"},
		{"migrate"},
		{"migrate", "--store", "memory:"},
		{"up", "--store", "mysql://x"},
		{"up", "--http", "0.0.0.0:0"},
		{"up", "--sweep-tick", "1ns"},
		{"up", "--shards", "0"},
		{"up", "--event-limit", "2000000"},
		{"completion", "powershell"},
	} {
		u.fails(2, `.`, args...)
	}
	if left, err := os.ReadDir(u.dir); err != nil || len(left) > 0 {
		t.Errorf("wrong usage left %v %v", left, err)
	}
	u.fails(3, `not_found`, "run", "show", "nobody")
	u.fails(3, `not_found`, "run", "history", "nobody")
	u.fails(3, `not_found`, "event", "get", "s", "nobody")
	u.fails(3, `not_found`, "wait", "register", "nobody", "e", "--type", "t")
	u.fails(4, `conflict`, "event", "put", "--type", "t", "--source", "s", "--id", "1", "--data", "2")
	u.fails(4, `conflict`, "run", "start", "other", "--workflow-id", "w", "--run-id", "r")
	u.fails(4, `conflict`, "run", "conclude", "r", "--expected", "7", "--yes")
	u.fails(5, `unavailable`, "run", "show", "w", "--server", "http://127.0.0.1:1")
	u.fails(1, `checks failed`, "doctor", "--server", "http://127.0.0.1:1")
}

// A program reads json or jsonl; nothing else is on its standard output.
func TestOutputForPrograms(t *testing.T) {
	u := newTool(t)
	for i := range 3 {
		u.ok("", "run", "start", "order", "--workflow-id", fmt.Sprint("w", i), "--run-id", fmt.Sprint("r", i))
	}
	for _, args := range [][]string{
		{"run", "list"},
		{"run", "show", "w0"},
		{"run", "history", "w0"},
		{"wait", "list"},
		{"system", "info"},
		{"system", "check"},
		{"doctor"},
		{"event", "put", "--type", "t", "--id", "1"},
		{"event", "get", "urn:rendezvous-cli", "1"},
		{"wait", "register", "r0", "e", "--type", "t"},
	} {
		out := u.ok("", append(args, "-o", "json")...)
		if !json.Valid([]byte(out)) || !strings.Contains(out, "\n  ") {
			t.Errorf("%v -o json: %s", args, out)
		}
		for _, line := range strings.Split(strings.TrimSpace(u.ok("", append(args, "--output=jsonl")...)), "\n") {
			if line != "" && !json.Valid([]byte(line)) {
				t.Errorf("%v -o jsonl: %s", args, line)
			}
		}
	}
	if rows := strings.Count(u.ok("", "run", "list", "-o", "jsonl"), "\n"); rows != 3 {
		t.Errorf("%d lines of 3 runs", rows)
	}
	page := u.ok("", "run", "list", "--limit", "2")
	cursor := regexp.MustCompile(`more: --cursor (\S+)`).FindStringSubmatch(page)
	if cursor == nil {
		t.Fatalf("no cursor: %s", page)
	}
	if rest := u.ok("", "run", "list", "-o", "jsonl", "--cursor", cursor[1]); strings.Count(rest, "\n") != 1 {
		t.Errorf("behind the first page: %s", rest)
	}
}

// event put --file sends every line, counts what became of each, and draws no progress bar where nobody looks.
func TestAFileOfEventsIsFed(t *testing.T) {
	u := newTool(t)
	var lines strings.Builder
	for i := range 450 {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"%d","source":"urn:a","type":"t","data":%d}`+"\n\n", i, i)
	}
	path := filepath.Join(t.TempDir(), "events.jsonl")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lines.String())
	r := u.run("event", "put", "--file", path)
	if r.code != 0 || r.out != "450 events:  450 accepted\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	u.stdin = lines.String()
	u.ok(`^450 events: +450 duplicate\n$`, "event", "put", "--file", "-")
	u.ok(`"duplicate": 450`, "event", "put", "--file", "-", "-o", "json")
	u.stdin = ""
	write(`{"specversion":"1.0","id":"0","source":"urn:a","type":"other"}` + "\n" + `{"specversion":"1.0","id":"new","source":"urn:a","type":"t"}` + "\n{}")
	r = u.run("event", "put", "--file", path)
	if r.code != 4 || r.out != "3 events:  1 accepted  1 conflict  1 rejected\n" || !strings.Contains(r.err, "event 1 (urn:a 0)") || !strings.Contains(r.err, "event 3") {
		t.Errorf("%+v", r)
	}
	write(`{"specversion":"1.0","id":"last","source":"urn:a","type":"t"}` + "\nnot JSON\n")
	u.fails(2, `event 2 is not JSON`, "event", "put", "--file", path)
}

// What cannot be undone wants --yes or the typed word; a variable of the environment is no such word.
func TestWhatCannotBeUndoneIsConfirmed(t *testing.T) {
	u := newTool(t)
	u.ok("", "event", "put", "--type", "t", "--source", "s", "--id", "1")
	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	u.env = append(u.env, "RENDEZVOUS_YES=true")
	for _, args := range [][]string{{"event", "erase", "s", "1"}, {"run", "conclude", "r"}, {"run", "cancel", "r", "--now"}} {
		for _, typed := range []string{"", "yes\n"} {
			u.stdin = typed
			u.fails(2, `cannot be undone.*nothing was done`, args...)
		}
	}
	u.ok(`(?s)state +live`, "event", "get", "s", "1")
	u.ok(`(?s)status +running`, "run", "show", "w")
	u.stdin = "erase\n"
	u.ok(`^erased`, "event", "erase", "s", "1")
	u.stdin = "end\n"
	u.ok(`^failed at record 2`, "run", "conclude", "r", "--outcome", "failed", "--code", "x", "--reason", "y")
}

// Settings come from the environment; what one command is to do does not: RENDEZVOUS_DATA is a folder of `up`, and no payload.
func TestOnlySettingsComeFromTheEnvironment(t *testing.T) {
	u := newTool(t)
	u.env = append(u.env, "RENDEZVOUS_DATA=./folder", "RENDEZVOUS_TYPE=other", "RENDEZVOUS_ID=other", "RENDEZVOUS_OUTPUT=json")
	u.ok(`"id": "mine"`, "event", "put", "--type", "t", "--source", "s", "--id", "mine")
	u.ok(`(?s)"type": "t"`, "event", "get", "s", "mine", "--data")
	u.fails(2, `--type`, "event", "put")
}

func TestContextsNameAServerATenantAndATokenFile(t *testing.T) {
	u := newTool(t)
	server, _ := strings.CutPrefix(u.env[0], "RENDEZVOUS_SERVER=")
	home, _ := strings.CutPrefix(u.env[2], "HOME=")
	token := filepath.Join(home, "token")
	dir := filepath.Join(home, ".config", "rendezvous")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(token, []byte("some-token\n"), 0o600), os.WriteFile(filepath.Join(dir, "contexts.json"),
		[]byte(`{"contexts":{"here":{"server":"`+server+`","tenant":"named","token_file":"`+token+`"},"lost":{"token_file":"/nonexistent"}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	u.env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "RENDEZVOUS_CONTEXT=here"}
	u.ok(`tenant +named`, "system", "info")
	u.ok(`tenant +flagged`, "system", "info", "--tenant", "flagged")
	u.fails(2, `token_file`, "system", "info", "--context", "lost")
}

// The scripts parse in the shells that are there, and bash completes from what it was typed.
func TestCompletionScriptsParse(t *testing.T) {
	u := &tool{t: t}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := u.ok("rendezvous", "completion", shell)
		if again := u.ok("", "completion", shell); again != script {
			t.Errorf("%s: two scripts differ", shell)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue // bash is on every machine that runs make here; the others where their users are
		}
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", shell, err, out)
		}
	}
	script := u.ok("", "completion", "bash")
	for typed, want := range map[string]string{
		"rendezvous ev": "event", "rendezvous event ": "erase get put", "rendezvous event put --ty": "--type", "rendezvous -t acme run hi": "", "rendezvous run hi": "history",
		"rendezvous to": "top", "rendezvous top --i": "--interval", "rendezvous timer ": "arm cancel list", "rendezvous timer arm --a": "--after --at", "rendezvous run ": "chain reopen", "rendezvous run history --f": "--follow",
	} {
		probe := script + "\nCOMP_WORDS=(" + typed
		if strings.HasSuffix(typed, " ") {
			probe += " ''"
		}
		probe += "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rendezvous; echo \"${COMPREPLY[@]}\""
		out, err := exec.CommandContext(t.Context(), "bash", "-c", probe).Output()
		got := strings.Fields(string(out))
		for _, w := range strings.Fields(want) {
			if err != nil || !strings.Contains(" "+strings.Join(got, " ")+" ", " "+w+" ") {
				t.Errorf("%q completes to %v, without %s (%v)", typed, got, w, err)
			}
		}
	}
}
