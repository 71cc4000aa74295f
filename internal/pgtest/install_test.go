package pgtest

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// bareMachine has no PostgreSQL, and of all other programs only a shell and the given scripts. They may write to $ROOT.
func bareMachine(t *testing.T, root bool, scripts map[string]string) (machine, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		text := "#!/bin/sh\nROOT=" + dir + "\n" + script
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	out := &bytes.Buffer{}
	return machine{path: dir, globs: []string{filepath.Join(dir, "lib", "*", "bin")}, root: root, lock: dir, out: out}, out
}

// install is what a package does that brings the programs.
const install = `/bin/mkdir -p $ROOT/lib/15/bin && for p in initdb postgres; do echo > $ROOT/lib/15/bin/$p; /bin/chmod +x $ROOT/lib/15/bin/$p; done
`

func TestRootInstallsByAptAndStopsOnlyTheClusterThatCameAlong(t *testing.T) {
	m, out := bareMachine(t, true, map[string]string{
		"apt-get":        `if [ "$1" = install ]; then ` + install + `fi`,
		"pg_lsclusters":  `echo "13 old 5433 online postgres /d /l"; if [ -d $ROOT/lib ]; then echo "15 main 5432 online postgres /d /l"; fi`,
		"pg_ctlcluster":  `:`,
		"systemctl":      `echo must not be used`,
		"invoke-rc.d":    `echo must not be used`,
		"pg_dropcluster": `echo must not be used`,
	})
	got, err := m.findOrInstall(t.Context())
	if err != nil || !strings.HasSuffix(got.postgres, "lib/15/bin/postgres") {
		t.Fatalf("findOrInstall: %+v, %v", got, err)
	}
	want := "pgtest: apt-get update\npgtest: apt-get install -y postgresql\npgtest: pg_ctlcluster 15 main stop\n"
	if out.String() != want {
		t.Errorf("it did\n%swant\n%s", out, want)
	}
}

func TestAnInstallationThatFailsIsAFailureThatNamesTheCommand(t *testing.T) {
	m, _ := bareMachine(t, true, map[string]string{"apt-get": `[ "$1" = update ]`})
	_, err := m.findOrInstall(t.Context())
	if err == nil || !strings.Contains(err.Error(), "`apt-get install -y postgresql`: exit status 1") {
		t.Errorf("findOrInstall: %v", err)
	}
}

func TestAnInstallationWithoutProgramsIsAFailure(t *testing.T) {
	m, _ := bareMachine(t, true, map[string]string{"apt-get": `:`})
	if _, err := m.findOrInstall(t.Context()); err == nil || !strings.Contains(err.Error(), "still missing") {
		t.Errorf("findOrInstall: %v", err)
	}
}

func TestAnybodyInstallsByBrew(t *testing.T) {
	m, out := bareMachine(t, false, map[string]string{"brew": install})
	if _, err := m.findOrInstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "pgtest: brew install postgresql@17\n"; out.String() != want {
		t.Errorf("it did %q, want %q", out, want)
	}
}

func TestWhoCannotInstallIsToldTheCommandAndFails(t *testing.T) {
	m, out := bareMachine(t, false, map[string]string{"apt-get": `echo must not be used`})
	_, err := m.findOrInstall(t.Context())
	if err == nil || !strings.Contains(err.Error(), "sudo apt-get update && sudo apt-get install -y postgresql") {
		t.Errorf("findOrInstall: %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("it did %q", out)
	}
}

func TestAdviceFitsTheMachine(t *testing.T) {
	for has, want := range map[string]string{
		"dnf":    "sudo dnf install -y postgresql-server",
		"apk":    "sudo apk add postgresql",
		"pacman": "sudo pacman -S postgresql",
		"brew":   brewInstall,
		"":       "see https://www.postgresql.org/download/, then put the folder of initdb into PATH",
	} {
		if got := adviceFor(func(program string) bool { return program == has }); got != want {
			t.Errorf("with %q: %q, want %q", has, got, want)
		}
	}
}

func TestOnlyClustersThatRunAreOnline(t *testing.T) {
	got := parseClusters("13 a 5432 down postgres /d /l\n15 b 5433 online,recovery postgres /d /l\n15 c 5434 online postgres /d /l\nshort line\n")
	if want := []systemCluster{{"15", "b"}, {"15", "c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("parseClusters: %v, want %v", got, want)
	}
}
