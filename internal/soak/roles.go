package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// A child of this program is told by the environment what it is.
const (
	roleVariable   = "RENDEZVOUS_SOAK_ROLE"
	folderVariable = "RENDEZVOUS_SOAK_FOLDER"
	listenVariable = "RENDEZVOUS_SOAK_LISTEN"

	roleGuard  = "guard"
	roleBroker = "broker"
)

// self is a command that runs this program in a role, in a process group of its own.
func self(role string, environment ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// play is the life of a child.
func play(role string) error {
	switch role {
	case roleGuard:
		return keepGuard()
	case roleBroker:
		return serveNATS(os.Getenv(folderVariable), os.Getenv(listenVariable))
	}
	return fmt.Errorf("%s=%s is no role of this program", roleVariable, role)
}

// serveNATS is the broker: a NATS server whose every write is synced, so that what it acknowledged survives SIGKILL as long as its folder does.
func serveNATS(folder, listen string) error {
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	cfg := messaging.DefaultConfig()
	cfg.Embedded.StoreDir, cfg.Embedded.Listen = folder, listen
	server, err := messaging.StartEmbedded(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return server.Shutdown(context.Background())
}
