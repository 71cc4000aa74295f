package pgtest

import (
	"fmt"
	"io"
	"os/exec"
)

// watchScript reads the process id of the server, or of the initdb before it, one per line, the last one valid, an empty line for none. The input ends when the
// test process does, also when that is killed; then it stops the process at once (SIGQUIT, after ten seconds SIGKILL) and removes the folder, again
// where a dying child still wrote into it. Were the test process to die between starting a server and writing its id, the missing folder
// would end that server within a minute: postgres looks for its lock file.
const watchScript = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null; then
  n=0
  while [ "$n" -lt 100 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; n=$((n + 1)); done
  kill -KILL "$pid" 2>/dev/null
fi
n=0
while rm -rf -- "$1"; [ "$n" -lt 50 ] && [ -n "$(ls -A "$1" 2>/dev/null)" ]; do sleep 0.1; n=$((n + 1)); done
`

// watchdog ends a cluster whose test process is gone.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// startWatchdog watches over the cluster in dir, as the account that can signal its server.
func startWatchdog(owner account, dir string) (*watchdog, error) {
	cmd := owner.own(exec.Command("/bin/sh", "-c", watchScript, "rdv-pgtest-watchdog", dir), "/")
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot watch over a test cluster: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot watch over a test cluster: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// watch names the process to end; 0 for none.
func (w *watchdog) watch(pid int) error {
	line := fmt.Sprintln(pid)
	if pid == 0 {
		line = "\n"
	}
	if _, err := io.WriteString(w.pipe, line); err != nil {
		return fmt.Errorf("the watchdog of a test cluster is gone: %w", err)
	}
	return nil
}

// end lets the watchdog do its work and waits for it.
func (w *watchdog) end() error {
	if err := w.pipe.Close(); err != nil {
		return fmt.Errorf("cannot dismiss the watchdog of a test cluster: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("the watchdog of a test cluster failed: %w", err)
	}
	return nil
}
