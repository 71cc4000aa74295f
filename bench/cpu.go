package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is processor time spent so far: by this process (plane and load together) and by the PostgreSQL server of its own.
type usage struct{ process, server time.Duration }

// cpu reads the usage; the server's is 0 where the machine does not say, or the server is not ours.
func (b *bench) cpu() usage {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	return usage{process: time.Duration(own.Utime.Nano() + own.Stime.Nano()), server: serverTime(b.o.server)}
}

// serverTime is the processor time of a PostgreSQL server: its first process and those of its connections. One that ended is counted by the first.
func serverTime(postmaster int) time.Duration {
	if postmaster == 0 {
		return 0
	}
	var all time.Duration
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fields := stat(pid)
		if len(fields) < 15 {
			continue
		}
		if parent, _ := strconv.Atoi(fields[1]); pid != postmaster && parent != postmaster {
			continue
		}
		for i := 11; i <= 14; i++ { // utime, stime, and those of ended children
			if i < 13 || pid == postmaster {
				all += ticks(fields[i])
			}
		}
	}
	return all
}

// processTime is the processor time of one process.
func processTime(pid int) time.Duration {
	fields := stat(pid)
	if len(fields) < 13 {
		return 0
	}
	return ticks(fields[11]) + ticks(fields[12])
}

// stat is the fields of /proc/pid/stat behind the command's name.
func stat(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(rest)
}

// ticks is clock ticks of 10 ms as a duration.
func ticks(s string) time.Duration {
	n, _ := strconv.Atoi(s)
	return time.Duration(n) * 10 * time.Millisecond
}

// per reports the processor time of each of n things since before.
func (b *bench) per(what string, n int, before usage) {
	now := b.cpu()
	b.spent(what, n, usage{process: now.process - before.process, server: now.server - before.server})
}

// spent reports the processor time of each of n things.
func (b *bench) spent(what string, n int, used usage) {
	each := func(d time.Duration) time.Duration { return (d / time.Duration(n)).Round(100 * time.Nanosecond) }
	fmt.Printf("  processor time %s: plane and load %s, PostgreSQL %s\n", what, each(used.process), each(used.server))
}
