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

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// endLimit is how long a question has to clean up when it is interrupted.
const endLimit = 20 * time.Second

// leasehold is where the command is built, which some questions run.
func leasehold(bin string) string { return filepath.Join(bin, "leasehold-command") }

// buildAll builds the programs of all questions, and returns why some could not be.
func buildAll(ctx context.Context, bin string, all []question) map[string]error {
	broken := make(map[string]error)
	if slices.ContainsFunc(all, func(q question) bool { return q.command }) {
		err := goBuild(ctx, "..", leasehold(bin), "./cmd/leasehold")
		for _, q := range all {
			if q.command && err != nil {
				broken[q.name] = err
			}
		}
	}
	var together []string
	for _, q := range all {
		if !q.module {
			together = append(together, "./"+q.name)
		}
	}
	// At once, so that what they share is compiled once and all cores have work.
	whole := len(together) > 0 && goBuild(ctx, ".", bin+string(filepath.Separator), together...) == nil
	for _, q := range all {
		var err error
		switch {
		case q.module:
			err = goBuild(ctx, q.name, filepath.Join(bin, q.name), "-tags="+q.spare, ".")
		case !whole: // one by one, to find out which
			err = goBuild(ctx, ".", filepath.Join(bin, q.name), "./"+q.name)
		}
		if err != nil {
			broken[q.name] = err
		}
	}
	return broken
}

// goBuild builds as go run does: without what only debuggers need, which takes as long to
// link as all else.
func goBuild(ctx context.Context, dir, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags=-s -w", "-o", to}, packages...)...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building it: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// args are those of a question's program.
func (s *session) args(q question) []string {
	args := []string{"-progress=lines"}
	if s.quick {
		args = append(args, "-quick", "-json")
	} else {
		args = append(append(args, q.args...), "-docs", s.docs)
	}
	if s.rounds > 0 {
		args = append(args, "-rounds", fmt.Sprint(s.rounds)) // the last one counts
	}
	return args
}

// ask runs a question's program, and follows its progress.
func (s *session) ask(ctx context.Context, q question) error {
	most := q.most(s.quick)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it takes longer than the %v that it has", most))
	defer cancel()
	s.show(0, q.name)
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, q.name), s.args(q)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	cmd.Env = append(os.Environ(), kit.CommandVariable+"="+leasehold(s.bin))
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, write := io.Pipe()
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		return err
	}
	reason := make(chan string, 1)
	go func() { reason <- s.follow(errs, q) }()
	err := cmd.Wait()
	_ = write.Close() // it never fails
	why := <-reason
	ended, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && ended.ExitCode() == kit.ExitMissed:
		s.progress.Note(q.name + ": not all goals are met")
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

// follow shows what a question tells of itself, and returns what seems to be why it
// ended, if it did so in vain.
func (s *session) follow(errs io.Reader, q question) string {
	said := bufio.NewScanner(errs)
	var r reason
	for said.Scan() {
		if share, text, ok := kit.ParseProgress(said.Text()); ok {
			s.show(share*float64(q.foreseen(s.quick)), q.name+": "+text)
			continue
		}
		s.progress.Note(said.Text())
		r.hear(said.Text(), q.name+": ")
	}
	_, _ = io.Copy(io.Discard, errs) // after a line that is too long: nobody may be kept waiting
	return r.text
}

// A reason is why a program ended, as far as what it said tells: its own error, which
// may have several lines; or how it crashed, without the stacks; or its last words.
type reason struct {
	text            string
	itsOwn, crashed bool
}

func (r *reason) hear(line, prefix string) {
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
