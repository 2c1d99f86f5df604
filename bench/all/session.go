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
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A session asks questions.
type session struct {
	options
	docs      string // absolute
	bin       string // where programs are built
	progress  *kit.Progress
	done, all int // seconds, as they were foreseen
	headlines []kit.Headline
}

// endLimit is how long a question has to clean up when it is interrupted.
const endLimit = 20 * time.Second

// buildSeconds is what building is foreseen to take, where little has changed.
const buildSeconds = 3

func (s *session) cost(q question) int {
	if s.quick {
		return q.quick
	}
	return q.seconds
}

// askAll builds and asks all questions that have a part in this. One that fails
// does not keep the others from being asked.
func (s *session) askAll(ctx context.Context) error {
	var asked []question
	for _, q := range s.questions {
		if s.cost(q) > 0 {
			asked = append(asked, q)
			s.all += s.cost(q) + buildSeconds
		}
	}
	var failed error
	built := asked[:0]
	for _, q := range asked { // first of all: nothing is built while something is measured
		s.show(0, "building "+q.name)
		if err := s.build(ctx, q); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", q.name, err))
		} else {
			built = append(built, q)
		}
		s.done += buildSeconds
	}
	for _, q := range built {
		if err := s.ask(ctx, q); err != nil {
			s.progress.Note(fmt.Sprintf("FAILED %s: %v", q.name, err))
			failed = errors.Join(failed, fmt.Errorf("%s: %w", q.name, err))
		}
		s.done += s.cost(q)
		if ctx.Err() != nil {
			return errors.Join(failed, context.Cause(ctx))
		}
	}
	s.show(0, "done")
	return failed
}

// show shows that a share of so many seconds is done, besides all before.
func (s *session) show(part float64, text string) {
	s.progress.Show((float64(s.done)+part)/float64(max(1, s.all)), text)
}

func (s *session) build(ctx context.Context, q question) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(s.bin, q.name), "./"+q.name)
	if q.module {
		cmd.Args[len(cmd.Args)-1], cmd.Dir = ".", q.name
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building it: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// ask runs a question's program, and follows its progress.
func (s *session) ask(ctx context.Context, q question) error {
	args := append([]string{"-progress=lines"}, q.args...)
	if s.quick {
		args = []string{"-progress=lines", "-quick", "-json"}
	} else {
		args = append(args, "-docs", s.docs)
	}
	s.show(0, q.name)
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, q.name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.follow(errs, q)
	err = cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == kit.ExitMissed {
		s.progress.Note(q.name + ": not all goals are met")
		err = nil
	}
	if err != nil || !s.quick {
		return err
	}
	return s.collect(&out)
}

// follow shows what a question tells of itself.
func (s *session) follow(errs io.Reader, q question) {
	said := bufio.NewScanner(errs)
	for said.Scan() {
		if share, text, ok := kit.ParseProgress(said.Text()); ok {
			s.show(share*float64(s.cost(q)), q.name+": "+text)
		} else {
			s.progress.Note(said.Text())
		}
	}
	_, _ = io.Copy(io.Discard, errs) // after a line that is too long: nobody may be kept waiting
}

// collect reads headlines.
func (s *session) collect(out io.Reader) error {
	for lines := json.NewDecoder(out); ; {
		var h kit.Headline
		err := lines.Decode(&h)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its headlines: %w", err)
		}
		s.headlines = append(s.headlines, h)
	}
}
