package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const (
	aptUpdate    = "apt-get update"
	aptInstall   = "apt-get install -y postgresql"
	brewInstall  = "brew install postgresql@17"
	whatIsNeeded = "PostgreSQL's server programs initdb and postgres (15 or newer)"
)

// machine is where programs are looked for and installed.
type machine struct {
	path  string   // PATH
	globs []string // folders outside PATH
	root  bool
	lock  string // a folder that exists wherever apt does; taken while installing
	out   io.Writer
}

// thisMachine tells on standard error what it installs, because a minute of silence looks like a hang.
func thisMachine() machine {
	return machine{
		path:  os.Getenv("PATH"),
		globs: installationGlobs,
		root:  os.Geteuid() == 0,
		lock:  "/var/lib/dpkg",
		out:   os.Stderr,
	}
}

// findOrInstall answers the programs, installing them where that needs nobody's consent: as root with apt-get, or with Homebrew.
func (m machine) findOrInstall(ctx context.Context) (programs, error) {
	if found, ok := findPrograms(m.path, m.globs); ok {
		return found, nil
	}
	var err error
	switch {
	case m.root && inPath("apt-get"):
		err = m.installByApt(ctx)
	case !m.root && inPath("brew"):
		err = m.run(ctx, brewInstall)
	default:
		return programs{}, fmt.Errorf("%s are neither in PATH nor in %s; install them first: %s",
			whatIsNeeded, strings.Join(m.globs, ", "), adviceFor(inPath))
	}
	if err != nil {
		return programs{}, fmt.Errorf("cannot install PostgreSQL: %w", err)
	}
	found, ok := findPrograms(m.path, m.globs)
	if !ok {
		return programs{}, fmt.Errorf("%s are still missing after installing them; put their folder into PATH", whatIsNeeded)
	}
	return found, nil
}

// adviceFor is the command a person on this machine would type.
func adviceFor(has func(program string) bool) string {
	switch {
	case has("apt-get"):
		return "sudo " + aptUpdate + " && sudo " + aptInstall
	case has("dnf"):
		return "sudo dnf install -y postgresql-server"
	case has("apk"):
		return "sudo apk add postgresql"
	case has("pacman"):
		return "sudo pacman -S postgresql"
	case has("brew"):
		return brewInstall
	default:
		return "see https://www.postgresql.org/download/, then put the folder of initdb into PATH"
	}
}

// installByApt installs under a lock, since several test processes may find the programs missing at the same moment. Debian's package makes and starts a system
// cluster on the way; one that was not there before is stopped again.
func (m machine) installByApt(ctx context.Context) error {
	lock, err := os.Open(m.lock)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", m.lock, err)
	}
	if _, ok := findPrograms(m.path, m.globs); ok {
		return nil // another process installed them while this one waited
	}
	before := onlineSystemClusters(ctx)
	for _, line := range []string{aptUpdate, aptInstall} {
		if err := m.run(ctx, line); err != nil {
			return err
		}
	}
	return m.stopOthers(ctx, before, onlineSystemClusters(ctx))
}

func (m machine) run(ctx context.Context, line string) error {
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = m.out, m.out
	fmt.Fprintf(m.out, "pgtest: %s\n", line)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("`%s`: %w", line, err)
	}
	return nil
}

// systemCluster is one of Debian's clusters, as pg_lsclusters names it.
type systemCluster struct{ version, name string }

func onlineSystemClusters(ctx context.Context) []systemCluster {
	out, err := exec.CommandContext(ctx, "pg_lsclusters", "--no-header").Output()
	if err != nil {
		return nil // not Debian's tools, or not installed yet: no cluster of theirs
	}
	return parseClusters(string(out))
}

// parseClusters reads lines of version, name, port, status, owner, …; the status is online, down, or online with a remark.
func parseClusters(listing string) []systemCluster {
	var online []systemCluster
	for line := range strings.Lines(listing) {
		if f := strings.Fields(line); len(f) >= 4 && strings.HasPrefix(f[3], "online") {
			online = append(online, systemCluster{f[0], f[1]})
		}
	}
	return online
}

func (m machine) stopOthers(ctx context.Context, before, after []systemCluster) error {
	known := map[systemCluster]bool{}
	for _, c := range before {
		known[c] = true
	}
	var errs []error
	for _, c := range after {
		if known[c] {
			continue
		}
		if err := m.run(ctx, "pg_ctlcluster "+c.version+" "+c.name+" stop"); err != nil {
			errs = append(errs, fmt.Errorf("stopping the system cluster that the installation started: %w", err))
		}
	}
	return errors.Join(errs...)
}
