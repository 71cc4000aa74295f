package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	lease    = 2 * time.Second // the shortest there is
	ackWait  = 2 * time.Second
	holdMost = 1200 * time.Millisecond

	napMost    = 2 * time.Second // of driven runs: some longer than the lease
	withinMost = 3 * time.Second
	shareHold  = 0.25 // of a driver's looks at its run are followed by a pause, over which answers come
)

// executors start one of the product's own executors for each tenant.
func executors(all []*access, log *slog.Logger) ([]*client.Executor, error) {
	var list []*client.Executor
	for _, a := range all {
		e, err := a.driver.NewExecutor(client.ExecutorOptions{
			Queue: queueDriven, Handler: handle, Name: "soak", Lease: lease, Concurrency: 24, AckWait: ackWait, Log: log,
		})
		if err != nil {
			return nil, err
		}
		if err := e.Start(); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// handle awaits a run's events one by one, or registers all of them ahead, and ends the run or continues it.
func handle(ctx context.Context, run *client.Run) error {
	var in input
	if err := run.Input().JSON(&in); err != nil {
		return err
	}
	var waiting error
	for step := range in.Steps {
		if in.NapMS > 0 && !in.Ahead {
			if err := run.Sleep(ctx, napOf(step), time.Duration(in.NapMS)*time.Millisecond); err != nil {
				return err
			}
		}
		_, err := run.Await(ctx, effectOf(step), eventType, in.await(step)...)
		switch {
		case errors.Is(err, client.ErrTimedOut):
		case errors.Is(err, client.ErrWaiting) && in.Ahead:
			waiting = err
		case errors.Is(err, client.ErrWaiting):
			hold(ctx)
			return err
		case err != nil:
			return err
		}
	}
	if waiting != nil {
		hold(ctx)
		return waiting
	}
	if next := in; in.Run+1 < in.Runs {
		next.Run++
		return run.ContinueAsNew(ctx, client.JSON(next))
	}
	return run.Complete(ctx, client.JSON(in))
}

// await is what a step waits for, and how long.
func (in input) await(step int) []client.AwaitOption {
	opts := []client.AwaitOption{client.OnKey(namespace, in.value(step))}
	if in.WithinMS > 0 {
		opts = append(opts, client.Within(time.Duration(in.WithinMS)*time.Millisecond))
	}
	return opts
}

func napOf(step int) string { return fmt.Sprintf("nap%d", step) }

// hold keeps the lease for a while at times.
func hold(ctx context.Context) {
	if rand.Float64() < shareHold {
		pause(ctx, rand.N(holdMost))
	}
}

// finish stops executors; they have to come down by themselves.
func finish(all []*client.Executor) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var errs []error
	for _, e := range all {
		errs = append(errs, e.Stop(ctx))
	}
	return errors.Join(errs...)
}

// startOf is the next run of a chain, as the wild drivers continue it.
func startOf(next input, run string) *wire.StartRun {
	return &wire.StartRun{RunID: run, Input: client.JSON(next).Wire()}
}
