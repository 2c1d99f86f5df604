// Command all runs the benchmarks, one after the other, with one progress bar, and
// writes docs/BENCHMARKS.md.
//
//	go run ./all                   all of it: make bench
//	go run ./all -quick            the headlines, as a table and as JSON lines: make bench-quick
//	go run ./all -only routing     some of it; the others keep their last result
//	go run ./all -list             how long each takes, and may take at most
//	go run ./all -page             only the page again, from the stored results
//
// A benchmark is a program of its own, which this one builds and runs. Missed goals
// are reported, but are no failure: the exit code is that of benchmarks that could
// not be run. The page says which these are, and why, and has the results of the
// others.
//
// To see a page soon, run few benchmarks with few rounds, and write it elsewhere:
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

// options are the flags.
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
	flags.BoolVar(&o.quick, "quick", false, "headlines only; nothing is stored")
	flags.BoolVar(&o.json, "json", false, "with -quick: only JSON lines, no table")
	flags.BoolVar(&o.page, "page", false, "run nothing, and write the page again")
	flags.BoolVar(&o.list, "list", false, "run nothing, and print how long the benchmarks take")
	flags.IntVar(&o.rounds, "rounds", 0, "turns of each contestant in each benchmark (default that of the benchmark)")
	flags.StringVar(&o.docs, "docs", filepath.Join("..", "..", "docs"), "directory of BENCHMARKS.md")
	flags.DurationVar(&o.limit, "limit", wholeLimit, "time limit of all together")
	var names []string
	for _, p := range programs() {
		names = append(names, p.name)
	}
	only := flags.String("only", "", "benchmarks, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0))
	}
	o.programs, err = report.Only(*only, programs(), func(p program) string { return p.name })
	return o, err
}

// errLimit reports that all took longer than they may.
var errLimit = errors.New("all benchmarks together take longer than the limit")

// run runs all, and reports each that failed.
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

// printHeadlines prints the headlines as a table, and as JSON lines.
func (s *session) printHeadlines(out io.Writer) error {
	if !s.json {
		if err := report.HeadlineTable(s.headlines).Print(out); err != nil {
			return err
		}
	}
	return report.PrintLines(out, s.headlines)
}
