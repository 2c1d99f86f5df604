package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	planted "github.com/leasehold-dev/leasehold/lab/mutant"
)

// maxMemory is the address space of a process, in KiB: a mutant may allocate without end.
const maxMemory = 3 << 20

// fast is the CPU time of a test that runs in the first batch.
const fast = 100 * time.Millisecond

// slowest is the CPU time of the slowest test that is used.
const slowest = 3 * time.Second

// A binary is a stage that is built with all mutants of a package.
type binary struct {
	stage
	program string
	flags   []string // of every run
	runs    []run    // fast ones first
}

// A usage is the time that a process took.
type usage struct{ cpu, wall time.Duration }

func (u usage) plus(v usage) usage { return usage{u.cpu + v.cpu, u.wall + v.wall} }

// A run is a test, or the whole program, without a mutant.
type run struct {
	test    string
	took    usage
	reached []string // functions
}

// build builds the stage and records what each test reaches.
func (s stage) build(ctx context.Context, dir string, texts map[string]string) (*binary, error) {
	overlay, err := planted.Overlay(dir, texts)
	if err != nil {
		return nil, err
	}
	b := &binary{stage: s, program: filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(s.name))}
	command := []string{"test", "-c", "-vet=off"}
	if s.isProgram() {
		command = []string{"build"}
	}
	if _, err := output(exec.CommandContext(ctx, "go", append(command, "-overlay", overlay, "-o", b.program, "./"+s.dir)...)); err != nil {
		return nil, err
	}
	return b, b.record(ctx, filepath.Join(dir, "reached"))
}

// tests returns the names of the tests of the stage.
func (b *binary) tests(ctx context.Context) ([]string, error) {
	if b.isProgram() {
		return []string{""}, nil
	}
	selected := "."
	for _, arg := range b.args {
		if pattern, ok := strings.CutPrefix(arg, "-test.run="); ok {
			selected = pattern
		}
	}
	// A failing case that rapid keeps would fail with later mutants, too.
	const noFailFile = "-rapid.nofailfile"
	list := []string{"-test.list", selected}
	out, err := exec.CommandContext(ctx, b.program, append(list, noFailFile)...).Output()
	if err == nil {
		b.flags = []string{noFailFile}
	} else {
		out, err = output(exec.CommandContext(ctx, b.program, list...)) // it does not link rapid
	}
	return regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`).FindAllString(string(out), -1), err
}

// record runs each test without a mutant. A test that fails alone, or is too slow, is not used.
func (b *binary) record(ctx context.Context, file string) error {
	names, err := b.tests(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		_ = os.Remove(file) // of the test before
		killed, took, err := b.run(ctx, []string{name}, usage{slowest / 4, 10 * time.Second}, "MUTANT=-1", "MUTANT_REACHED="+file)
		if err != nil {
			return err
		}
		if killed {
			fmt.Printf("%s: %s fails without a mutant, or is slow: not used\n", b.name, name)
			continue
		}
		reached, err := os.ReadFile(file) //nolint:gosec // our own
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		b.runs = append(b.runs, run{name, took, strings.Fields(string(reached))})
	}
	slices.SortStableFunc(b.runs, func(x, y run) int { return cmp.Compare(x.took.cpu, y.took.cpu) })
	return b.runTogether(ctx)
}

// runTogether checks that the tests pass together without a mutant: otherwise every mutant would seem to be killed.
func (b *binary) runTogether(ctx context.Context) error {
	var names []string
	var usual usage
	for _, r := range b.runs {
		names, usual = append(names, r.test), usual.plus(r.took)
	}
	if failed, _, err := b.run(ctx, names, usual, "MUTANT=0"); failed && err == nil && len(names) > 0 {
		return fmt.Errorf("%s: the tests fail without a mutant", b.name)
	}
	return ctx.Err()
}

// kills reports whether a test of the stage fails with a mutant, and whether any runs the function at all.
func (b *binary) kills(ctx context.Context, m *mutant) (killed, reached bool, err error) {
	var batches [2][]string
	var usual [2]usage
	for _, r := range b.runs {
		if slices.Contains(r.reached, m.function.name) {
			i := 0
			if r.took.cpu > fast {
				i = 1
			}
			batches[i] = append(batches[i], r.test)
			usual[i] = usual[i].plus(r.took)
		}
	}
	for i, batch := range batches {
		if len(batch) == 0 {
			continue
		}
		reached = true
		if killed, _, err = b.run(ctx, batch, usual[i], fmt.Sprintf("MUTANT=%d", m.number)); killed || err != nil {
			return killed, true, err
		}
	}
	return false, reached, nil
}

// run runs tests, which take some time without a mutant, and reports whether one fails.
func (b *binary) run(ctx context.Context, names []string, usual usage, env ...string) (failed bool, took usage, err error) {
	args := b.args
	if !b.isProgram() {
		args = append([]string{"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.short", "-test.failfast", "-test.timeout=1h"}, slices.Concat(b.flags, withoutRun(b.args))...)
	}
	shell := fmt.Sprintf(`ulimit -t %d && ulimit -v %d && exec "$0" "$@"`, 4*usual.cpu/time.Second+2, maxMemory)
	cmd := exec.Command("sh", append([]string{"-c", shell, b.program}, args...)...) //nolint:gosec // our own
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	var out strings.Builder
	cmd.Stdout = &out
	if !b.isProgram() {
		cmd.Dir = b.dir
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return false, usage{}, err
	}
	exited := make(chan struct{})
	go killBlocked(ctx, cmd.Process, 4*usual.wall+2*time.Second, exited)
	err = cmd.Wait()
	close(exited)
	took = usage{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(began)}
	clean := !b.isProgram() || strings.TrimSpace(out.String()) == "null"
	return err != nil || !clean, took, ctx.Err()
}

// killBlocked kills a process that uses no CPU although it should have exited. A process that is ready to run goes on:
// the machine may be loaded, and the CPU time has a limit of its own.
func killBlocked(ctx context.Context, p *os.Process, after time.Duration, exited <-chan struct{}) {
	next := time.NewTimer(after)
	defer next.Stop()
	for idle := 0; idle < 4; next.Reset(500 * time.Millisecond) {
		select {
		case <-exited:
			return
		case <-ctx.Done():
			idle = 4
		case <-next.C:
			if idle++; runnable(p.Pid) {
				idle = 0
			}
		}
	}
	_ = p.Kill() // it may have exited
}

// runnable reports whether a thread of a process runs or waits for a processor. On systems without /proc it is false.
func runnable(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is valid
	return slices.ContainsFunc(threads, func(name string) bool {
		stat, _ := os.ReadFile(name) //nolint:gosec // a thread that has exited does not run
		return strings.Contains(string(stat), ") R ")
	})
}

func withoutRun(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-test.run=") })
}
