// Command all runs the benchmarks, one after the other, with one progress bar, and
// writes docs/BENCHMARKS.md.
//
//	go run ./all                   all benchmarks: make bench
//	go run ./all -quick            the headlines, as a table and as JSON lines: make bench-quick
//	go run ./all -only routing     some; the others keep their last result
//	go run ./all -list             durations and time limits
//	go run ./all -page             only the page, from the stored results
//
// A benchmark is a separate program, which this one builds and runs. Missed goals are
// reported but are no failure: the exit code is 1 if a benchmark could not be run. The
// page lists these with the error, and has the results of the others.
//
// For a quick look, run few benchmarks with few rounds, and write the page elsewhere:
//
//	go run ./all -only ownership,balance -rounds 2 -docs /tmp/docs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o, os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	programs []program
	quick    bool
	json     bool
	page     bool
	list     bool
	docs     string
	rounds   int
	limit    time.Duration
}

func parse(args []string, help io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("all", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&o.quick, "quick", false, "headlines only, without storing results")
	flags.BoolVar(&o.json, "json", false, "with -quick: JSON lines without the table")
	flags.BoolVar(&o.page, "page", false, "only write the page")
	flags.BoolVar(&o.list, "list", false, "only print durations")
	flags.IntVar(&o.rounds, "rounds", 0, "turns of each contestant (default that of the benchmark)")
	flags.StringVar(&o.docs, "docs", filepath.Join("..", "..", "docs"), "directory of BENCHMARKS.md")
	flags.DurationVar(&o.limit, "limit", wholeLimit, "time limit of all benchmarks")
	var names []string
	for _, p := range programs() {
		names = append(names, p.name)
	}
	only := flags.String("only", "", "benchmarks, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if names, err = report.Only(*only, names); err != nil {
		return o, err
	}
	o.programs = slices.DeleteFunc(programs(), func(p program) bool { return !slices.Contains(names, p.name) })
	return o, nil
}

// errLimit is the error of a run above the time limit.
var errLimit = errors.New("all benchmarks together take longer than the limit")

func run(ctx context.Context, o options, out io.Writer, errs *os.File) error {
	if o.page {
		return report.WritePage(o.docs)
	}
	if o.list {
		return budget(o.programs).Print(out)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("%w of %v", errLimit, o.limit))
	defer cancel()
	docs, err := filepath.Abs(o.docs)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	s := &session{options: o, docs: docs, bin: bin, progress: report.NewProgress(errs), build: buildAll}
	failed := s.runAll(ctx)
	s.progress.End()
	if err := s.spent.Print(errs); err != nil {
		return err
	}
	if o.quick {
		failed = errors.Join(failed, s.printHeadlines(out))
	}
	return failed
}

func (s *session) printHeadlines(out io.Writer) error {
	if !s.json {
		if err := report.HeadlineTable(s.headlines).Print(out); err != nil {
			return err
		}
	}
	return report.PrintLines(out, s.headlines)
}

// A program is a benchmark in a directory beside this one. Number and title are repeated here
// for benchmarks that fail without a stored result.
type program struct {
	name    string
	number  int
	title   string
	module  bool     // a separate module
	spare   string   // build tag of a module with -quick, which omits slow dependencies
	command bool     // runs the leasehold command
	seconds int      // approximate duration
	limit   int      // time limit in seconds
	quick   int      // duration with -quick; 0: not part of it
	args    []string // for the page
}

// programs returns the benchmarks in their order. With building, they take at most 45 minutes
// if one of them reaches its limit, and less than 3 with -quick.
func programs() []program {
	return []program{
		{name: "routing", number: 1, title: "Routing", module: true, spare: "nodskit", seconds: 160, limit: 225, quick: 15},
		{name: "ownership", number: 2, title: "Ownership check", seconds: 12, limit: 30, quick: 5},
		{name: "scale", number: 3, title: "Manager at scale", command: true, seconds: 1380, limit: 1440, quick: 25},
		{name: "propagation", number: 4, title: "Propagation", seconds: 185, limit: 245, quick: 10},
		{name: "availability", number: 5, title: "Availability", command: true, seconds: 120, limit: 170, quick: 30},
		{name: "grants", number: 6, title: "Grant rate", seconds: 170, limit: 210, quick: 18},
		{name: "balance", number: 7, title: "Balance", seconds: 75, limit: 120, quick: 7},
		{name: "flease", number: 8, title: "Flease", seconds: 300, limit: 360, quick: 25, args: []string{"-rounds", "2", "-warm", "1"}},
		{name: "guard", number: 9, title: "Regression guard", seconds: 15, limit: 30},
	}
}

// buildLimit is the time limit of building with an empty cache.
const buildLimit = 3 * time.Minute

const wholeLimit = 45 * time.Minute

// quickSlack is the time limit with -quick relative to the duration, for busy machines.
const quickSlack = 4

// result returns a result without measurements.
func (p program) result() report.Result {
	return report.Result{Benchmark: p.name, Number: p.number, Title: p.title}
}

func budget(all []program) *report.Table {
	t := report.NewTable("Durations in seconds", "benchmark", "takes", "at most", "with -quick")
	var takes, quick int
	for _, p := range all {
		t.Add(p.name, p.seconds, p.limit, p.quick)
		takes, quick = takes+p.seconds, quick+p.quick
	}
	t.Add("building, with an empty cache", "", buildLimit.Seconds(), "")
	t.Add("all", takes, wholeLimit.Seconds(), quick)
	return t
}
