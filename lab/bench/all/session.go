package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

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

var errNoTime = errors.New("no time left")

// buildSeconds is the expected duration of building after changes.
const buildSeconds = 20

// runAll builds and runs the benchmarks. After a failure it continues with the others.
func (s *session) runAll(ctx context.Context) error {
	s.spent = report.NewTable("Seconds", "", "expected", "taken")
	s.all = buildSeconds
	var wanted []program
	for _, p := range s.programs {
		if s.quick {
			p.seconds, p.limit = p.quick, quickSlack*p.quick
		} else {
			p.spare = ""
		}
		if p.seconds > 0 {
			wanted = append(wanted, p)
			s.all += p.seconds
		}
	}
	s.show(0, "building")
	began := time.Now()
	broken := s.build(ctx, s.bin, wanted) // before any measurement
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
		s.took(p.name, p.seconds, began)
	}
	s.show(0, "done")
	return failed
}

// interrupted reports whether the user, and not the limit, has ended the run.
func interrupted(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errLimit)
}

// recordFailure prints a failure, stores it for the page, and returns it.
func (s *session) recordFailure(p program, why error) error {
	s.progress.Note(fmt.Sprintf("FAILED %s: %v", p.name, why))
	failed := fmt.Errorf("%s: %w", p.name, why)
	if s.quick {
		return failed
	}
	return errors.Join(failed, report.StoreFailure(s.docs, p.result(), why))
}

// show displays the progress, with a number of completed seconds of the current program.
func (s *session) show(part float64, text string) {
	s.progress.Show((float64(s.done)+part)/float64(max(1, s.all)), text)
}

func (s *session) took(what string, expected int, began time.Time) {
	s.done += expected
	s.spent.Add(what, expected, fmt.Sprintf("%.1f", time.Since(began).Seconds()))
}

// endLimit is the time for a benchmark to clean up when it is interrupted.
const endLimit = 20 * time.Second

// leasehold returns the path of the built command.
func leasehold(bin string) string { return filepath.Join(bin, "leasehold-command") }

// buildAll builds all programs, and returns the errors by name.
func buildAll(ctx context.Context, bin string, all []program) map[string]error {
	broken := make(map[string]error)
	if slices.ContainsFunc(all, func(p program) bool { return p.command }) {
		err := proc.GoBuild(ctx, "../..", leasehold(bin), "./cmd/leasehold")
		for _, p := range all {
			if p.command && err != nil {
				broken[p.name] = err
			}
		}
	}
	var together []string
	for _, p := range all {
		if !p.module {
			together = append(together, "./"+p.name)
		}
	}
	// Together, so that shared packages are compiled once and all cores are busy.
	whole := len(together) > 0 && proc.GoBuild(ctx, ".", bin+string(filepath.Separator), together...) == nil
	for _, p := range all {
		var err error
		switch {
		case p.module:
			err = proc.GoBuildModule(ctx, p.name, filepath.Join(bin, p.name), "-tags="+p.spare, ".")
		case !whole: // one by one, to find the broken one
			err = proc.GoBuild(ctx, ".", filepath.Join(bin, p.name), "./"+p.name)
		}
		if err != nil {
			broken[p.name] = err
		}
	}
	return broken
}

func (s *session) args(p program) []string {
	args := []string{"-lines"}
	if s.quick {
		args = append(args, "-quick", "-json")
	} else {
		args = append(append(args, p.args...), "-docs", s.docs)
	}
	if s.rounds > 0 {
		args = append(args, "-rounds", fmt.Sprint(s.rounds)) // the last flag wins
	}
	return args
}

func (s *session) run(ctx context.Context, p program) error {
	most := time.Duration(p.limit) * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("time limit of %v exceeded", most))
	defer cancel()
	s.show(0, p.name)
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, p.name), s.args(p)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	cmd.Env = append(os.Environ(), proc.CommandVariable+"="+leasehold(s.bin))
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, write := io.Pipe()
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		return err
	}
	reason := make(chan string, 1)
	go func() { reason <- s.follow(errs, p) }()
	err := cmd.Wait()
	_ = write.Close() // never fails
	why := <-reason
	ended, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && ended.ExitCode() == report.ExitMissed:
		s.progress.Note(p.name + ": not all goals are met")
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && why != "":
		return errors.New(why)
	case err != nil:
		return err
	}
	if !s.quick {
		return nil
	}
	return s.collect(&out)
}

// follow displays the progress of a program, and returns the probable reason of a failure.
func (s *session) follow(errs io.Reader, p program) string {
	lines := bufio.NewScanner(errs)
	var r reason
	for lines.Scan() {
		if share, text, ok := report.ParseProgress(lines.Text()); ok {
			s.show(share*float64(p.seconds), p.name+": "+text)
			continue
		}
		s.progress.Note(lines.Text())
		r.read(lines.Text(), p.name+": ")
	}
	_, _ = io.Copy(io.Discard, errs) // after an oversized line, so that the program does not block
	return r.text
}

// A reason is the cause of a failure, from a program's output: its own error, which may have
// several lines; or the panic, without stacks; or the last line.
type reason struct {
	text            string
	itsOwn, crashed bool
}

func (r *reason) read(line, prefix string) {
	text, itsOwn := strings.CutPrefix(line, prefix)
	crash := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	switch {
	case itsOwn || crash:
		*r = reason{text, itsOwn, crash}
	case r.itsOwn:
		r.text += " " + line
	case !r.crashed && line != "":
		r.text = line
	}
}

func (s *session) collect(out io.Reader) error {
	for lines := json.NewDecoder(out); ; {
		var h report.Headline
		err := lines.Decode(&h)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("headlines: %w", err)
		}
		s.headlines = append(s.headlines, h)
	}
}
