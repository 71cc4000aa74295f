package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
)

// guard kills what this process started and did not live to end: it is a child that reads the ids of running processes from a pipe.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	mu   sync.Mutex
}

func startGuard() (*guard, error) {
	cmd, err := self(roleGuard)
	if err != nil {
		return nil, err
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// began and ended tell the guard which processes run.
func (g *guard) began(pid int) error { return g.tell(pid) }
func (g *guard) ended(pid int) error { return g.tell(-pid) }

func (g *guard) tell(pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := fmt.Fprintln(g.pipe, pid); err != nil {
		return fmt.Errorf("the guard is gone: %w", err)
	}
	return nil
}

// end dismisses the guard; the error tells that it found something to kill.
func (g *guard) end() error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("processes were left behind: %w", err)
	}
	return nil
}

// keepGuard is the guard's own life: it reads until the pipe closes, kills what runs then, and fails if there was anything.
func keepGuard() error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // a Ctrl-C is for the process it guards
	running := map[int]bool{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		switch {
		case err != nil:
		case pid > 0:
			running[pid] = true
		default:
			delete(running, -pid)
		}
	}
	var errs []error
	for pid := range running {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			errs = append(errs, fmt.Errorf("process %d was still running", pid))
		}
	}
	return errors.Join(errs...)
}
