package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	upLook     = 25 * time.Millisecond
	upPatience = 40 * time.Second
	stopLimit  = 30 * time.Second
)

// process is one part of the plane that can be killed: the same command, life after life.
type process struct {
	name    string
	log     string // file that every life appends to
	command func() (*exec.Cmd, error)
	ready   func(ctx context.Context) error // one look
	guard   *guard
	died    func(name string, err error) // it ended and nobody asked it to

	mu     sync.Mutex
	cmd    *exec.Cmd
	asked  bool          // the end of this life was asked for
	exited chan struct{} // closed when it is over
	result error
	lives  int
}

// Name implements victim.
func (p *process) Name() string { return p.name }

// program is what runs in it.
func (p *process) program() string { return strings.TrimRight(p.name, "-0123456789") }

// Start begins a life; nothing when one goes on.
func (p *process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	cmd, err := p.command()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	p.lives++
	fmt.Fprintf(out, "--- life %d at %s\n", p.lives, time.Now().UTC().Format(time.RFC3339Nano))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	p.cmd, p.asked, p.exited = cmd, false, make(chan struct{})
	go p.await(cmd, p.exited)
	return p.guard.began(cmd.Process.Pid)
}

func (p *process) await(cmd *exec.Cmd, exited chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	asked := p.asked
	p.cmd, p.result = nil, err
	p.mu.Unlock()
	_ = p.guard.ended(cmd.Process.Pid) // a guard that is gone is reported where the next process begins
	close(exited)
	if !asked {
		p.died(p.name, err)
	}
}

// signal asks for the end of this life and answers its result when it is over; ok is false when none went on.
func (p *process) signal(sig syscall.Signal, limit time.Duration) (result error, ok bool, err error) {
	p.mu.Lock()
	if p.cmd == nil {
		p.mu.Unlock()
		return nil, false, nil
	}
	p.asked = true
	err = p.cmd.Process.Signal(sig)
	exited := p.exited
	p.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, true, err
	}
	select {
	case <-exited:
	case <-time.After(limit):
		return nil, true, fmt.Errorf("%s did not end within %s", p.name, limit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result, true, nil
}

// Kill implements victim: SIGKILL, and gone when it answers.
func (p *process) Kill() error {
	_, _, err := p.signal(syscall.SIGKILL, stopLimit)
	return err
}

// Stall stops the process without ending it, as a machine does that is out of breath, and lets it go on after d.
func (p *process) Stall(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, d)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// Stop ends the process as an operator would. It must end by itself, and well.
func (p *process) Stop() error {
	result, ok, err := p.signal(syscall.SIGTERM, stopLimit)
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	if ok && result != nil {
		return fmt.Errorf("%s ended badly after SIGTERM: %w (see %s)", p.name, result, filepath.Base(p.log))
	}
	return nil
}

// Restart implements victim.
func (p *process) Restart(context.Context) error { return p.Start() }

// Up implements victim: it answers when the process does its work.
func (p *process) Up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upPatience)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w", p.name, upPatience, err)
		case <-time.After(upLook):
		}
	}
}
