package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// samples are durations to be read by percentile.
type samples []time.Duration

// at is the p-th percentile; the samples are sorted by it.
func (s samples) at(p int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[min(len(s)-1, len(s)*p/100)].Round(time.Microsecond)
}

// fsyncLatency writes and syncs 8 KiB two hundred times: what a durable figure stands beside.
func fsyncLatency(dir string) (samples, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page := make([]byte, 8192)
	var s samples
	for range 200 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		s = append(s, time.Since(start))
	}
	return s, nil
}
