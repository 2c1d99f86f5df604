// Record runs the proofs of package faults, and writes the results to lab/faults/results.json, and
// docs/FAULTS.md, which is generated from them.
//
//	go run ./lab/faults/record               # tests and simulators
//	go run ./lab/faults/record -missing      # only those that have not been recorded yet
//	go run ./lab/faults/record -chaos bin/chaos.json,bin/soak.json,bin/beyond.json # the reports of make chaos and make soak
//	go run ./lab/faults/record -page         # only the page is written
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/leasehold-dev/leasehold/lab/faults"
)

// Paths relative to the root of the module.
const (
	resultsFile = "lab/faults/results.json"
	pageFile    = "docs/FAULTS.md"
)

type options struct {
	worlds  int
	count   int
	missing bool
	page    bool
	only    string
	chaos   string
	date    string
}

func main() {
	var o options
	flag.IntVar(&o.worlds, "seeds", 10_000, "number of simulated worlds of each kind")
	flag.IntVar(&o.count, "count", 1, "number of runs of each test")
	flag.BoolVar(&o.missing, "missing", false, "run only tests and simulators without a recorded result")
	flag.BoolVar(&o.page, "page", false, "only write the page")
	flag.StringVar(&o.only, "only", "", "run only this `kind`: tests or sim")
	flag.StringVar(&o.chaos, "chaos", "", "only add the reports in these comma-separated `files` of leasehold-lab chaos --report")
	flag.Parse()
	o.date = time.Now().UTC().Format(time.DateOnly)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// run executes the flags, and writes the results even after a failure.
func (o *options) run(ctx context.Context) error {
	results, err := faults.ReadResults(resultsFile)
	if os.IsNotExist(err) {
		results, err = &faults.Results{}, nil
	}
	if err != nil {
		return err
	}
	var failed error
	switch {
	case o.page:
	case o.chaos != "":
		failed = o.takeChaos(results)
	default:
		if o.only != "sim" {
			failed = o.runTests(ctx, results)
		}
		if failed == nil && o.only != "tests" {
			failed = o.simulate(ctx, results)
		}
	}
	if err := results.Write(resultsFile); err != nil {
		return err
	}
	if err := os.WriteFile(pageFile, []byte(faults.Page(faults.Cases(), results)), 0o644); err != nil { //nolint:gosec // a document
		return err
	}
	return failed
}
