package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// An error stands alone, with where help is; it is not buried under a page of it.
func TestWrongUsageIsTwoLines(t *testing.T) {
	u := &tool{t: t, dir: t.TempDir()}
	for want, args := range map[string][]string{
		"^rendezvous: error: unexpected argument dance\nsee rendezvous --help\n$":                  {"dance"},
		"^rendezvous: error: unknown flag --colour.*\nsee rendezvous run show --help\n$":           {"run", "show", "w", "--colour"},
		"^rendezvous: error: expected .*\nsee rendezvous --help\n$":                                {},
		"^rendezvous: error: --at: \"noon\" is not an RFC 3339 time, such as .*\nsee .*\n$":        {"push", "unpark", "r", "--at", "noon"},
		"^rendezvous: error: unknown flag --tenant.*\nsee rendezvous completion --help\n$":         {"--tenant", "x", "completion", "bash"},
		"^rendezvous: invalid: store: there is no directory .*/typo to make store in; make it, or": {"up", "--store", "sqlite:" + u.dir + "/typo/store"},
		"^rendezvous: invalid: target: there is no directory .*/typo to make monday in; make it,":  {"backup", u.dir + "/typo/monday"},
	} {
		u.fails(2, want, args...)
		if r := u.run(args...); r.out != "" {
			t.Errorf("%v prints %q", args, r.out)
		}
	}
	if left, err := os.ReadDir(u.dir); err != nil || len(left) > 0 {
		t.Errorf("wrong usage left %v %v", left, err)
	}
}

// What is asked of any program is answered by this one, and help tells defaults.
func TestHelpAndVersionAreAskedInAnyWay(t *testing.T) {
	u := &tool{t: t}
	u.ok(`^rendezvous \d`, "--version")
	u.ok(`^Usage: rendezvous <command>`, "help")
	u.ok(`(?s)^Usage: rendezvous run list .*http://127.0.0.1:7480.*tenant to act in: default`, "help", "run", "list")
	words := strings.Join(strings.Fields(u.ok("", "up", "--help")), " ")
	for _, setting := range []string{"default ./rendezvous-data", "default 127.0.0.1:7480", "default 127.0.0.1:7481", "default 127.0.0.1:4222", "Without one rendezvous up keeps it in"} {
		if !strings.Contains(words, setting) {
			t.Errorf("the help of up lacks %q: %s", setting, words)
		}
	}
}

// Flags of every command that reaches a plane may stand before it, too.
func TestCommonFlagsStandOnEitherSide(t *testing.T) {
	u := newTool(t)
	u.ok("", "--tenant=shop", "run", "start", "order", "--workflow-id", "w")
	u.ok(`"workflow_id": "w"`, "-t", "shop", "-o", "json", "run", "list")
	u.ok(`^\[\]|"runs": \[\]`, "run", "list", "-o", "json")
	u.fails(3, `"-w" is not known in tenant shop`, "-t", "shop", "run", "history", "--", "-w")
}

// Ids of runs and workflows are easily taken for one another: who is wrong is told where to look, and asked nothing about what is not there.
func TestWhoNamesTheWrongThingIsToldTheRight(t *testing.T) {
	u := newTool(t)
	u.ok("", "run", "start", "order", "--workflow-id", "order-1", "--run-id", "run-1")
	for _, verb := range []string{"history", "show"} {
		u.fails(3, `workflow "run-1" is not known in tenant acme; a run has that id; its workflow is order-1\n$`, "run", verb, "run-1")
		u.fails(3, `workflow "nobody" is not known in tenant acme\n$`, "run", verb, "nobody")
	}
	u.stdin = "end\n"
	for _, args := range [][]string{{"run", "conclude", "nobody"}, {"run", "cancel", "nobody", "--now"}} {
		u.fails(3, `^rendezvous: not_found`, args...)
	}
	u.fails(2, `Run run-1 of workflow order-1 \(running\) ends at once`, "run", "cancel", "run-1", "--now")
}

// What is allowed and seldom meant is done, and hinted at beside the output.
func TestHintsStandBesideTheOutput(t *testing.T) {
	u := newTool(t)
	u.ok("", "run", "start", "order", "--run-id", "r")
	for _, c := range []struct {
		hint string
		args []string
	}{
		{`^hint: no key: .*--run r\)`, []string{"wait", "register", "r", "keyless", "--type", "t"}},
		{`^$`, []string{"event", "put", "--type", "t", "--run", "r"}}, // answers it
		{`^hint: no key and no run: .*--key`, []string{"event", "put", "--type", "t"}},
		{`^hint: the key "order=1 " has`, []string{"event", "put", "--type", "t", "--key", "order=1 "}},
		{`^hint: the key " order=1" has`, []string{"wait", "register", "r", "blank", "--type", "t", "--key", " order=1"}},
		{`^$`, []string{"event", "put", "--type", "t", "--subject", "1"}},
	} {
		if r := u.run(c.args...); r.code != 0 || r.out == "" || !regexp.MustCompile(c.hint).MatchString(r.err) {
			t.Errorf("%v: %+v, want %s", c.args, r, c.hint)
		}
	}
}

// The port of NATS is easily taken for the API's; the doctor says what it did not look at.
func TestWhatIsNoPlaneIsToldSo(t *testing.T) {
	u := newTool(t)
	url, _ := nodetest.Broker(t)
	u.fails(5, `what answers there is no Rendezvous API`, "run", "show", "w", "--server", strings.Replace(url, "nats:", "http:", 1))
	u.ok(`(?s)API +ok.*store +skipped +check it with --store.*NATS +skipped +check it with --nats`, "doctor")
}

// The banner tells which store it serves and how much is in it, so that the wrong one does not look like the right one.
func TestTheBannerTellsWhatTheStoreHolds(t *testing.T) {
	dir := t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "store")
	for _, want := range []string{"new and empty", "1 workflow"} {
		up, server, says := greeting(t, store)
		if at := "All it holds is in " + filepath.Join(dir, "store") + " (" + want + ")"; !strings.Contains(says, at) {
			t.Errorf("says %q, want %q", says, at)
		}
		(&tool{t: t}).ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r", "--server", server, "--tenant", "other")
		must(t, up.Process.Kill())
		_ = up.Wait() // killed
	}
}

var program = regexp.MustCompile("(?s)```go\n(package main.*?)```")

// README's programs are programs: each compiles in a module of its own.
func TestProgramsOfREADMECompile(t *testing.T) {
	root, err := filepath.Abs("../..")
	must(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	must(t, err)
	found := program.FindAllSubmatch(readme, -1)
	if len(found) == 0 {
		t.Fatal("README has no program")
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	must(t, err)
	const module = "github.com/rendezvous-events/rendezvous"
	text := strings.Replace(string(mod), "module "+module, "module shop", 1) + "\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n"
	for _, f := range found {
		dir := t.TempDir()
		for name, content := range map[string]string{"main.go": string(f[1]), "go.mod": text, "go.sum": string(sum)} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, f[1])
		}
	}
}
