// Record runs what proves the cases of package faults, and writes down what came of it:
// lab/faults/results.json, and docs/FAULTS.md, which is made of that.
//
//	go run ./lab/faults/record               # tests and simulators
//	go run ./lab/faults/record -missing      # only tests that have not been recorded yet
//	go run ./lab/faults/record -chaos bin/chaos.json,bin/soak.json,bin/beyond.json # what make chaos and make soak have left
//	go run ./lab/faults/record -page         # nothing is run; only the page is written
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

// Where things are, from the root of the module.
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
	flag.IntVar(&o.worlds, "seeds", 10_000, "how many worlds of each kind to simulate")
	flag.IntVar(&o.count, "count", 1, "how often to run each test")
	flag.BoolVar(&o.missing, "missing", false, "run only tests of which nothing is recorded")
	flag.BoolVar(&o.page, "page", false, "run nothing, and write the page")
	flag.StringVar(&o.only, "only", "", "run only `what`: tests or sim")
	flag.StringVar(&o.chaos, "chaos", "", "take `files`, with commas between them, that leasehold-lab chaos --report has written, and run nothing")
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

// run does what is asked for, and writes what came of it even if something failed.
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
		if failed == nil && o.only != "tests" && !o.missing {
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
