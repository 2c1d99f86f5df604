package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A session runs benchmarks.
type session struct {
	options
	docs      string // absolute
	bin       string // where programs are built
	progress  *report.Progress
	build     func(ctx context.Context, bin string, all []program) map[string]error
	done, all int // expected seconds
	headlines []report.Headline
	spent     *report.Table
}

// errNoTime reports that all benchmarks together have taken too long.
var errNoTime = errors.New("there was no time left for it")

// buildSeconds is what building is expected to take, where some has changed.
const buildSeconds = 20

// runAll builds and runs all benchmarks that have a part in this. A failure does not
// keep the others from running.
func (s *session) runAll(ctx context.Context) error {
	s.spent = report.NewTable("Seconds", "", "expected", "taken")
	s.all = buildSeconds
	var wanted []program
	for _, p := range s.programs {
		if !s.quick {
			p.spare = ""
		}
		if p.expected(s.quick) > 0 {
			wanted = append(wanted, p)
			s.all += p.expected(s.quick)
		}
	}
	s.show(0, "building")
	began := time.Now()
	broken := s.build(ctx, s.bin, wanted) // first of all: nothing is built while something is measured
	s.took("building", buildSeconds, began)
	var failed error
	for _, p := range wanted {
		began := time.Now()
		err := broken[p.name]
		if err == nil && ctx.Err() != nil {
			err = errNoTime
		}
		if err == nil {
			err = s.run(ctx, p)
		}
		if interrupted(ctx) {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = errors.Join(failed, s.recordFailure(p, err))
		}
		s.took(p.name, p.expected(s.quick), began)
	}
	s.show(0, "done")
	return failed
}

// interrupted reports whether the user has ended it, and not the limit.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLimit)
}

// recordFailure reports a failure at once, at the end, and on the page, where the
// results of others stay.
func (s *session) recordFailure(p program, why error) error {
	s.progress.Note(fmt.Sprintf("FAILED %s: %v", p.name, why))
	failed := fmt.Errorf("%s: %w", p.name, why)
	if s.quick {
		return failed
	}
	return errors.Join(failed, report.StoreFailure(s.docs, p.result(), why))
}

// show shows that a share of so many seconds is done, besides all before.
func (s *session) show(part float64, text string) {
	s.progress.Show((float64(s.done)+part)/float64(max(1, s.all)), text)
}

// took records how long a step took.
func (s *session) took(what string, expected int, began time.Time) {
	s.done += expected
	s.spent.Add(what, expected, fmt.Sprintf("%.1f", time.Since(began).Seconds()))
}
