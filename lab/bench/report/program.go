// Package report is the engine of all benchmarks: the command line, interleaved rounds,
// medians with their spread, headlines, goals, tables, and the page docs/BENCHMARKS.md.
//
// # Adding a benchmark
//
//  1. Create a package beside this one with a function that returns a [Benchmark], and add it
//     to lab/bench/main.go. The package comment describes the comparison.
//  2. In Run, give the contestants turns in rounds: with [Compete] for loops, and with
//     [Rounds] for anything else. Report progress with [Run.Step].
//  3. Add the results to the [Result]: sections with tables, headlines, goals, and with
//     [Result.Lose] each comparison in which a peer is better, with the reason.
//  4. Support Run.Quick: the same headlines, in some 20 s.
//
// # Method
//
// Other work slows a machine down at times. So turns are short and many, contestants
// alternate, and medians are compared: a slow period affects all contestants, and the
// median ignores it. The slowest and the fastest turn are reported, too.
package report

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/server/console"
)

// A Benchmark is a section of the page.
type Benchmark struct {
	Name   string
	Number int // of the section
	Title  string
	About  string   // Markdown: the comparison and the method
	Parts  []string // that -only can select
	// QuickPart is the part that -quick runs without -only; empty is all parts.
	QuickPart string
	Long      []string // parts that run only if -only names them

	Rounds, Quick         int // turns of each contestant: the default, and that of -quick
	Seconds, QuickSeconds int // expected durations

	Run func(context.Context, *Run) error
}

// A Run is a running benchmark.
type Run struct {
	*Result
	Rounds int
	Quick  bool   // headlines only, in seconds
	Dir    string // for temporary files; removed at the end

	parts    []string
	progress *console.Progress
	began    time.Time
	expected time.Duration
}

// Step reports a completed step. A run without a display, as in tests, ignores it.
func (r *Run) Step(format string, args ...any) {
	if r.progress == nil {
		return
	}
	elapsed := time.Since(r.began)
	share := float64(elapsed) / float64(max(1, r.expected))
	r.progress.Report(elapsed, min(share, 0.99), r.Benchmark+": "+fmt.Sprintf(format, args...))
}

// Wants reports whether a part is to be run.
func (r *Run) Wants(part string) bool { return slices.Contains(r.parts, part) }

// Main runs the benchmarks that the command line selects, and exits. The exit code is 1 if one
// could not be run; missed goals are reported only.
func Main(all []*Benchmark) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, all, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, all []*Benchmark, args []string, out, errs io.Writer) error {
	o, err := parse(all, args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case o.page:
		return writePage(o.docs)
	}
	var headlines []Headline
	var failed error
	for _, s := range o.chosen {
		result, err := s.run(ctx, o, errs)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			headlines = append(headlines, result.Headlines...)
			err = o.publish(result, out)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.Name, err)
			_, _ = fmt.Fprintln(errs, "FAILED", err) // it is returned, too
			failed = errors.Join(failed, err)
		}
	}
	if o.quick {
		failed = errors.Join(failed, headlineTable(headlines).Print(out), printLines(out, headlines))
	}
	return failed
}

// run runs a benchmark.
func (s selection) run(ctx context.Context, o *options, errs io.Writer) (_ *Result, err error) {
	rounds, expected := cmp.Or(o.rounds, s.Rounds), s.Seconds
	if o.quick {
		rounds, expected = cmp.Or(o.rounds, s.Quick), s.QuickSeconds
	}
	r := &Run{
		Rounds: rounds, Quick: o.quick, parts: s.parts,
		began: time.Now(), expected: time.Duration(expected) * time.Second,
		progress: console.NewProgress(console.New(errs), false),
		Result: &Result{
			Benchmark: s.Name, Number: s.Number, Title: s.Title, About: s.About, Command: s.command(o),
			Date: time.Now().UTC().Format(time.DateOnly), Machine: here(),
		},
	}
	limit := 3*r.expected + time.Minute // for busy machines
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("time limit of %v exceeded", limit))
	defer cancel()
	if r.Dir, err = os.MkdirTemp(o.dir, "bench-"+s.Name+"-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	err = s.Run(ctx, r)
	r.progress.Stop()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.Seconds = significant(time.Since(r.began).Seconds())
	return r.Result, err
}

// publish prints the result, and stores it, unless it is a quick one.
func (o *options) publish(r *Result, out io.Writer) error {
	if o.quick {
		return nil
	}
	if err := r.print(out); err != nil || o.docs == "" {
		return err
	}
	if err := r.store(o.docs); err != nil {
		return err
	}
	return writePage(o.docs)
}
