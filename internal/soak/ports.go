package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// address is a free one on the loopback, below the range that systems give to outgoing connections: a process that is down finds its port free again.
func address(taken map[int]bool) (string, error) {
	const low, high, tries = 15000, 30000, 200
	var err error
	for range tries {
		port := low + rand.IntN(high-low)
		if taken[port] {
			continue
		}
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var l net.Listener
		if l, err = net.Listen("tcp4", at); err == nil {
			taken[port] = true
			return at, l.Close()
		}
	}
	return "", fmt.Errorf("no free port between %d and %d in %d tries: %w", low, high, tries, err)
}
