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

// Places that apt's packages make: the lock folder must exist before anything is installed.
const (
	dpkgFolder   = "/var/lib/dpkg"
	aptUpdate    = "apt-get update"
	aptInstall   = "apt-get install -y postgresql"
	brewInstall  = "brew install postgresql@17"
	whatIsNeeded = "PostgreSQL's server programs initdb and postgres (15 or newer)"
)

// findOrInstall answers the programs of this machine, installing them where that needs nobody's consent: as root with apt-get, or with Homebrew.
// What the installers print goes to standard error, because a minute of silence looks like a hang.
func findOrInstall(ctx context.Context) (programs, error) {
	if found, ok := findPrograms(os.Getenv("PATH"), installationGlobs); ok {
		return found, nil
	}
	var err error
	switch {
	case os.Geteuid() == 0 && inPath("apt-get"):
		err = installByApt(ctx, os.Stderr)
	case os.Geteuid() != 0 && inPath("brew"):
		err = installByBrew(ctx, os.Stderr)
	default:
		return programs{}, fmt.Errorf("%s are neither in PATH nor in %s; install them first: %s",
			whatIsNeeded, strings.Join(installationGlobs, ", "), adviceFor(inPath))
	}
	if err != nil {
		return programs{}, err
	}
	found, ok := findPrograms(os.Getenv("PATH"), installationGlobs)
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
func installByApt(ctx context.Context, out io.Writer) error {
	lock, err := os.Open(dpkgFolder)
	if err != nil {
		return fmt.Errorf("cannot lock %s to install PostgreSQL: %w", dpkgFolder, err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %s to install PostgreSQL: %w", dpkgFolder, err)
	}
	if _, ok := findPrograms(os.Getenv("PATH"), installationGlobs); ok {
		return nil // another process installed them while this one waited
	}
	before := onlineSystemClusters(ctx)
	for _, line := range []string{aptUpdate, aptInstall} {
		if err := run(ctx, out, line); err != nil {
			return fmt.Errorf("cannot install PostgreSQL: `%s`: %w", line, err)
		}
	}
	return stopOthers(ctx, out, before, onlineSystemClusters(ctx))
}

func installByBrew(ctx context.Context, out io.Writer) error {
	if err := run(ctx, out, brewInstall); err != nil {
		return fmt.Errorf("cannot install PostgreSQL: `%s`: %w", brewInstall, err)
	}
	return nil
}

func run(ctx context.Context, out io.Writer, line string) error {
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = out, out
	fmt.Fprintf(out, "pgtest: %s\n", line)
	return cmd.Run()
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

func stopOthers(ctx context.Context, out io.Writer, before, after []systemCluster) error {
	known := map[systemCluster]bool{}
	for _, c := range before {
		known[c] = true
	}
	var errs []error
	for _, c := range after {
		if known[c] {
			continue
		}
		if err := run(ctx, out, "pg_ctlcluster "+c.version+" "+c.name+" stop"); err != nil {
			errs = append(errs, fmt.Errorf("cannot stop the system cluster %s/%s that the installation started: %w", c.version, c.name, err))
		}
	}
	return errors.Join(errs...)
}
