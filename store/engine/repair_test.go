package engine

import (
	"testing"
	"time"
)

// TestNoticesComeAtGrowingIntervals proves the schedule of RN-17: 10 s doubling to 10 min with jitter, and no end.
func TestNoticesComeAtGrowingIntervals(t *testing.T) {
	for range 100 {
		last := time.Duration(0)
		for n := range 7 {
			d := resumeInterval(n)
			if full := doubled(resumeRetry, n, maxResumeRetry); d > full || d < full-full/8 {
				t.Fatalf("interval %d is %s, outside an eighth below %s", n, d, full)
			}
			if d <= last && n < 6 {
				t.Fatalf("interval %d is %s, not longer than the %s before it", n, d, last)
			}
			last = d
		}
	}
	for _, n := range []int{6, 7, 64, 1 << 20} {
		if d := resumeInterval(n); d > maxResumeRetry || d < maxResumeRetry*7/8 {
			t.Errorf("interval %d is %s, want about %s", n, d, maxResumeRetry)
		}
	}
}

// TestReclaimsInARowWaitLongerAndLonger proves the schedule of RN-60: the second waits 2 s, doubling to 10 min.
func TestReclaimsInARowWaitLongerAndLonger(t *testing.T) {
	for n, want := range map[int]time.Duration{
		2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 1000: 10 * time.Minute,
	} {
		if got := reclaimPause(n); got != want {
			t.Errorf("reclaim %d in a row waits %s, want %s", n, got, want)
		}
	}
}
