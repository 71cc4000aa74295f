package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who runs the server. PostgreSQL refuses to run as root.
type account struct {
	// credential is nil where the server runs as the caller.
	credential *syscall.Credential
}

// findAccount answers the caller's own account, or for root one without rights: that of PostgreSQL's package, else nobody.
func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody` to run it as: add one, or run the tests as another user")
}

// tempFolder makes the folder of one cluster: the account's own, closed to others.
func (a account) tempFolder() (string, error) {
	base := os.TempDir()
	if a.credential != nil && !openToAll(base) {
		base = "/tmp" // root's own TMPDIR may stand in a folder that no other account may enter
	}
	dir, err := os.MkdirTemp(base, "rdv-pgtest-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for a test cluster: %w", err)
	}
	if a.credential != nil {
		if err := os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return "", errors.Join(fmt.Errorf("cannot give %s to the server's account: %w", dir, err), os.Remove(dir))
		}
	}
	return dir, nil
}

// openToAll tells whether every folder on the way to dir may be entered by everybody.
func openToAll(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// own makes cmd run as the account, in dir, in a session of its own: a Ctrl-C in the terminal is for the tests, which then stop the server in
// order. None of the caller's PG variables reach it.
func (a account) own(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: a.credential}
	return cmd
}
