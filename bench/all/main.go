// Command all asks the questions of the benchmark, one after the other, with one
// progress bar, and writes docs/BENCHMARKS.md.
//
//	go run ./all                   all of it: make bench
//	go run ./all -quick            the headlines, as a table and as JSON lines: make bench-quick
//	go run ./all -only routing     some of it; the others keep what they last found
//	go run ./all -list             how long each takes, and may take at most
//	go run ./all -page             only the page again, from what is stored
//
// A question is a program of its own, which this one builds and runs. Goals that
// are missed are told, but are no failure: the exit code is that of questions
// that could not be answered. The page says which these are, and why, and has what
// the others found.
//
// How long each took is told at the end. To see a page soon, ask few questions with
// few rounds, and write it elsewhere:
//
//	go run ./all -only ownership,rival -rounds 2 -docs /tmp/docs
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

	"github.com/leasehold-dev/leasehold/bench/kit"
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

// options are what the command line says.
type options struct {
	questions []question
	quick     bool
	json      bool
	page      bool
	list      bool
	docs      string
	rounds    int
	limit     time.Duration
}

func parse(args []string, help io.Writer) (options, error) {
	o := options{questions: questions()}
	flags := flag.NewFlagSet("all", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&o.quick, "quick", false, "headlines only; nothing is stored")
	flags.BoolVar(&o.json, "json", false, "with -quick: only JSON lines, no table")
	flags.BoolVar(&o.page, "page", false, "ask nothing, and write the page again")
	flags.BoolVar(&o.list, "list", false, "ask nothing, and tell how long the questions take")
	flags.IntVar(&o.rounds, "rounds", 0, "how many turns everyone has in each question (default what each thinks best)")
	flags.StringVar(&o.docs, "docs", filepath.Join("..", "docs"), "directory of BENCHMARKS.md")
	flags.DurationVar(&o.limit, "limit", wholeLimit, "how long all may take")
	only := flags.String("only", "", "questions to ask, separated by commas: "+strings.Join(names(o.questions), ", ")+" (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is too much: there are only flags", flags.Arg(0))
	}
	if *only == "" {
		return o, nil
	}
	wanted := strings.Split(*only, ",")
	for _, w := range wanted {
		if !slices.Contains(names(o.questions), w) {
			return o, fmt.Errorf("there is no question %q: want some of %s", w, strings.Join(names(o.questions), ", "))
		}
	}
	o.questions = slices.DeleteFunc(o.questions, func(q question) bool { return !slices.Contains(wanted, q.name) })
	return o, nil
}

// errLimit says that all took longer than they may.
var errLimit = errors.New("all questions together take longer than the limit")

// run asks all questions, and tells of each that it could not ask.
func run(ctx context.Context, o options, out io.Writer, errs *os.File) error {
	if o.page {
		return kit.WritePage(o.docs)
	}
	if o.list {
		return budget(o.questions).Print(out)
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
	s := &session{options: o, docs: docs, bin: bin, progress: kit.NewProgress(errs), build: buildAll}
	failed := s.askAll(ctx)
	s.progress.End()
	if err := s.spent.Print(errs); err != nil {
		return err
	}
	if o.quick {
		failed = errors.Join(failed, s.printHeadlines(out))
	}
	return failed
}

// printHeadlines prints what was found as a table, and as JSON lines.
func (s *session) printHeadlines(out io.Writer) error {
	all := kit.Result{Headlines: s.headlines}
	if !s.json {
		if err := kit.HeadlineTable(all.Headlines).Print(out); err != nil {
			return err
		}
	}
	return all.PrintLines(out)
}
