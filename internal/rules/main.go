// Command rules shows which test cites which rule of docs/spec, and which rule no test cites.
//
//	go run ./internal/rules            every rule and its tests, then those without, then totals
//	go run ./internal/rules -without   those without alone
//	go run ./internal/rules -totals    totals alone
//
// A test cites a rule by its number, in its name (TestEV12...), in a comment or in a string: EV-12, EV-1..EV-3. Citations are looked for in _test.go files and in the
// battery, store/storetest. That a rule is cited does not prove it: it tells a reader where to look. A citation of a number that no contract
// has is an error, since it is a typing error or a rule that went.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	without := flag.Bool("without", false, "print only the rules that no test cites")
	totals := flag.Bool("totals", false, "print only the totals")
	root := flag.String("root", ".", "`folder` of the repository")
	flag.Parse()
	if err := run(*root, *without, *totals); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(root string, without, totals bool) error {
	rules, err := readRules(root)
	if err != nil {
		return err
	}
	cited, err := readCitations(root)
	if err != nil {
		return err
	}
	r := report{rules: rules, cited: cited}
	switch {
	case totals:
		r.totals(os.Stdout)
	case without:
		r.without(os.Stdout)
	default:
		r.table(os.Stdout)
		r.without(os.Stdout)
		r.totals(os.Stdout)
	}
	return r.unknown()
}
