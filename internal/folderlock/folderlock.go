// Package folderlock keeps a folder to one process: its files would spoil under two.
package folderlock

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// Lock is held until it is released, and no longer than its process lives.
type Lock struct{ flock *flock.Flock }

// Take locks the file at path, which is made where it is missing; its folder has to be there. Where somebody else has it, the lock is nil and owner says who:
// "pid 4711", at most 20 bytes; it is for messages only. An error is of a file that cannot be locked or written.
func Take(path string) (lock *Lock, owner string, err error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	got, err := f.TryLock()
	if err != nil {
		return nil, "", err
	}
	if !got {
		number, _ := os.ReadFile(path) // it only makes the message better
		return nil, fmt.Sprintf("%.20s", strings.TrimSpace("pid "+string(number))), nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return nil, "", errors.Join(err, f.Unlock())
	}
	return &Lock{flock: f}, "", nil
}

// Release gives the folder to the next. Idempotent.
func (l *Lock) Release() error { return l.flock.Unlock() }
