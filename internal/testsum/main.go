// Command testsum reads what go test -json prints and shows what a person wants to see of it: one line per package as it ends, the whole output of what
// failed, every skip, and a closing line of counts.
//
//	go test -json ./... | go run ./internal/testsum -skips .ci/skips
//
// It fails when a test failed, when a test skipped that the file of allowed skips does not name, and when no test ran. A skip is a promise
// nobody checked: it has to be seen, and to have a reason.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	skips := flag.String("skips", "", "`file` of allowed skips: package, test and reason on each line; # starts a comment")
	flag.Parse()
	// A Ctrl-C in the terminal ends go test; what it printed until then is worth the summary.
	signal.Ignore(os.Interrupt)
	if err := run(*skips); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(skips string) error {
	allowed, err := readSkips(skips)
	if err != nil {
		return err
	}
	s := newSummary(os.Stdout, allowed)
	if err := s.read(os.Stdin); err != nil {
		return err
	}
	return s.close()
}
