//go:build skewed

package clock

import (
	"fmt"
	"os"
	"time"
)

// SkewVariable names the variable of the environment that says how far the clock of a process is off, as time.ParseDuration reads it. Only builds with the tag
// skewed know it: they are made to show that the clocks of pods decide nothing (I16).
const SkewVariable = "RENDEZVOUS_CLOCK_SKEW"

var skew = skewOf(os.Getenv(SkewVariable))

// now is the machine's clock, off by a constant: differences are what they are.
func now() time.Time { return time.Now().Add(skew) }

// skewOf reads the variable and tells of it. A build with the tag is never run by mistake: without a skew it ends.
func skewOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "this program is built for tests, with a clock that is off; %s says by how much, and does not: %v\n", SkewVariable, err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "this program is built for tests: its clock is off by %s\n", d)
	return d
}
