package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A session asks questions.
type session struct {
	options
	docs      string // absolute
	bin       string // where programs are built
	progress  *kit.Progress
	build     func(ctx context.Context, bin string, all []question) map[string]error
	done, all int // seconds, as they were foreseen
	headlines []kit.Headline
	spent     *kit.Table
}

// errNoTime says that all questions together have taken too long.
var errNoTime = errors.New("there was no time left for it")

// buildSeconds is what building is foreseen to take, where some has changed.
const buildSeconds = 20

// askAll builds and asks all questions that have a part in this. One that fails
// does not keep the others from being asked.
func (s *session) askAll(ctx context.Context) error {
	s.spent = kit.NewTable("Seconds", "", "foreseen", "taken")
	s.all = buildSeconds
	var asked []question
	for _, q := range s.questions {
		if !s.quick {
			q.spare = ""
		}
		if q.foreseen(s.quick) > 0 {
			asked = append(asked, q)
			s.all += q.foreseen(s.quick)
		}
	}
	s.show(0, "building")
	began := time.Now()
	broken := s.build(ctx, s.bin, asked) // first of all: nothing is built while something is measured
	s.took("building", buildSeconds, began)
	var failed error
	for _, q := range asked {
		began := time.Now()
		err := broken[q.name]
		if err == nil && ctx.Err() != nil {
			err = errNoTime
		}
		if err == nil {
			err = s.ask(ctx, q)
		}
		if interrupted(ctx) {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = errors.Join(failed, s.tell(q, err))
		}
		s.took(q.name, q.foreseen(s.quick), began)
	}
	s.show(0, "done")
	return failed
}

// interrupted reports whether the user wants it to end, and not the limit.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLimit)
}

// tell says that a question could not be answered: at once, at the end, and on the
// page, where what others found stays.
func (s *session) tell(q question, why error) error {
	s.progress.Note(fmt.Sprintf("FAILED %s: %v", q.name, why))
	failed := fmt.Errorf("%s: %w", q.name, why)
	if s.quick {
		return failed
	}
	return errors.Join(failed, kit.StoreFailure(s.docs, q.result(), why))
}

// show shows that a share of so many seconds is done, besides all before.
func (s *session) show(part float64, text string) {
	s.progress.Show((float64(s.done)+part)/float64(max(1, s.all)), text)
}

// took notes how long something took that was foreseen to take so many seconds.
func (s *session) took(what string, foreseen int, began time.Time) {
	s.done += foreseen
	s.spent.Add(what, fmt.Sprint(foreseen), fmt.Sprintf("%.1f", time.Since(began).Seconds()))
}
