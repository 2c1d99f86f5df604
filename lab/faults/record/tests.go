package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/faults"
)

// testCommand stands for all runs of tests: which tests those are, the page says itself.
const testCommand = "go run ./lab/faults/record -only tests"

// A pack is the tests of a directory that are built alike.
type pack struct{ dir, tags string }

// runTests runs the tests, directory by directory. A directory in which something fails does
// not keep the others from being run.
func (o *options) runTests(ctx context.Context, r *faults.Results) error {
	run := faults.Run{Kind: faults.Test, Command: testCommand, Date: o.date, Counts: map[string]int{}, Failures: map[string]int{}}
	for i := range r.Runs {
		if o.missing && r.Runs[i].Command == testCommand {
			run.Counts, run.Failures = r.Runs[i].Counts, r.Runs[i].Failures
		}
	}
	if run.Failures == nil {
		run.Failures = map[string]int{}
	}
	wanted := make(map[pack][]faults.Proof)
	var order []pack
	known := make(map[string]bool)
	for _, c := range faults.Cases() {
		for _, p := range c.Proofs {
			if p.Kind != faults.Test || known[p.String()] {
				continue
			}
			known[p.String()] = true
			if o.missing && run.Counts[p.String()] > 0 && run.Failures[p.String()] == 0 {
				continue
			}
			in := pack{p.Dir, p.Tags}
			if wanted[in] == nil {
				order = append(order, in)
			}
			wanted[in] = append(wanted[in], p)
		}
	}
	var failed []string
	for _, in := range order {
		fmt.Fprintf(os.Stderr, "%s: %s\n", in.dir, plural(len(wanted[in]), "test"))
		if err := o.runPack(ctx, in, wanted[in], &run); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", in.dir, err))
		}
	}
	for name := range run.Counts {
		if !known[name] {
			delete(run.Counts, name)
			delete(run.Failures, name)
		}
	}
	run.Violations = 0
	for name, n := range run.Failures {
		if run.Violations += n; n == 0 {
			delete(run.Failures, name)
		}
	}
	run.Size = plural(len(run.Counts), "test") + " by name"
	replace(r, &run)
	if len(failed) > 0 {
		return fmt.Errorf("%s", strings.Join(failed, "\n"))
	}
	return nil
}

func (o *options) runPack(ctx context.Context, in pack, proofs []faults.Proof, run *faults.Run) error {
	var names []string
	for _, p := range proofs {
		top, _, _ := strings.Cut(p.Name, "/")
		if !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	args := []string{"test", "-json", "-timeout=10m", fmt.Sprintf("-count=%d", o.count), "-run=^(" + strings.Join(names, "|") + ")$"}
	if in.tags != "" {
		args = append(args, "-tags="+in.tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+in.dir)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	passed, broken, heard := outcomes(out)
	for _, p := range proofs {
		run.Counts[p.String()], run.Failures[p.String()] = passed[p.Name], broken[p.Name]
		if passed[p.Name] == 0 && err == nil {
			err = fmt.Errorf("%s did not run, or was skipped", p.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, heard)
	}
	return nil
}

// outcomes counts how often each test has passed and failed, and returns what those have printed that
// have failed.
func outcomes(text []byte) (passed, failed map[string]int, printed string) {
	passed, failed = map[string]int{}, map[string]int{}
	said := make(map[string]*strings.Builder)
	var all strings.Builder
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			all.WriteString(err.Error())
			break
		}
		switch e.Action {
		case "pass":
			passed[e.Test]++
		case "fail":
			failed[e.Test]++
			if said[e.Test] != nil {
				all.WriteString(said[e.Test].String())
			}
		case "output", "build-output":
			if said[e.Test] == nil {
				said[e.Test] = &strings.Builder{}
			}
			_, _ = said[e.Test].WriteString(e.Output)
		}
	}
	return passed, failed, all.String()
}
