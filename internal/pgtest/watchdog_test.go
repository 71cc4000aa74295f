package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// holder is another test process that holds a cluster, or a program in its place.
type holder struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
	dir   string
	pid   int
}

func hold(t *testing.T, role string, cmd *exec.Cmd) *holder {
	t.Helper()
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &holder{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the other process holds nothing: %v, %v", err, cmd.Wait())
	}
	if _, err := fmt.Sscan(line, &h.url, &h.dir, &h.pid); err != nil {
		t.Fatal(err)
	}
	return h
}

// await looks again and again: a process that is not a child gives no signal of what it does.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := clock.WithTimeout(t.Context(), clock.System, 30*time.Second)
	defer cancel()
	for !ok() {
		if clock.Sleep(ctx, clock.System, 10*time.Millisecond) != nil {
			t.Fatalf("after 30 s still not: %s", what)
		}
	}
}

func self(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAKilledTestProcessLeavesNothing(t *testing.T) {
	for role := range roles {
		t.Run(role, func(t *testing.T) {
			h := hold(t, role, exec.Command(self(t)))
			if !alive(h.pid) || gone(h.dir) {
				t.Fatal("the other process holds nothing")
			}
			if err := h.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := h.cmd.Wait(); err == nil {
				t.Fatal("the other process was not killed")
			}
			await(t, "no process and no folder", func() bool { return !alive(h.pid) && gone(h.dir) })
		})
	}
}

func TestATestProcessKilledWhileItsClusterIsMadeLeavesNothing(t *testing.T) {
	base := t.TempDir()
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		cmd := exec.Command(self(t))
		cmd.Env = append(os.Environ(), roleVariable+"=cluster", "TMPDIR="+base)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// initdb makes this file early in its second of work.
		await(t, "initdb at work", func() bool {
			found, err := filepath.Glob(filepath.Join(base, "*", "data", "PG_VERSION"))
			return err == nil && len(found) > 0
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the other process was not killed")
		}
		await(t, "an empty folder", func() bool {
			left, err := os.ReadDir(base)
			return err == nil && len(left) == 0
		})
	}
}

// PostgreSQL runs as another account for root only; everybody else runs it as themselves. Root's run of this test covers both.
func TestAnAccountWithoutRightsStartsItsOwn(t *testing.T) {
	binary := self(t)
	var credential *syscall.Credential
	if os.Geteuid() == 0 {
		credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		binary = copyForAll(t, binary)
	}
	cmd := exec.Command(binary)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	h := hold(t, "cluster", cmd)
	if got := ask[string](t, h.url, "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %q", got)
	}
	info, err := os.Stat(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; credential != nil && owner != credential.Uid {
		t.Errorf("the folder belongs to account %d", owner)
	}
	if err := h.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if alive(h.pid) || !gone(h.dir) {
		t.Errorf("left: server %v, folder %v", alive(h.pid), !gone(h.dir))
	}
}

// copyForAll puts the test binary where another account may run it.
func copyForAll(t *testing.T, binary string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rdv-pgtest-binary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "pgtest.test")
	if err := os.WriteFile(target, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return target
}

func TestOnlyTheOpenWayIsOpenToAll(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	inner := filepath.Join(closed, "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"/": true, inner: false, strings.TrimSuffix(closed, "closed") + "missing": false} {
		if got := openToAll(dir); got != want {
			t.Errorf("openToAll(%s) = %v", dir, got)
		}
	}
}
