package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/faults"
	"github.com/leasehold-dev/leasehold/server/console"
)

// testCommand represents all runs of tests; the page lists the tests.
const testCommand = "go run ./lab/faults/record -only tests"

// A pack is the tests of a directory with the same build tags.
type pack struct{ dir, tags string }

// runTests runs the tests, directory by directory. After a failure it continues with the other directories.
func (o *options) runTests(ctx context.Context, r *faults.Results) error {
	run := faults.Run{Kind: faults.Test, Command: testCommand, Date: o.date, Counts: map[string]int{}, Failures: map[string]int{}}
	for i := range r.Runs {
		if o.missing && r.Runs[i].Command == testCommand {
			maps.Copy(run.Counts, r.Runs[i].Counts)
			maps.Copy(run.Failures, r.Runs[i].Failures)
		}
	}
	wanted := make(map[pack][]faults.Proof)
	var order []pack
	known := make(map[string]bool)
	for _, c := range faults.Cases() {
		for _, p := range c.Proofs {
			name := p.String()
			if p.Kind != faults.Test || known[name] {
				continue
			}
			known[name] = true
			if o.missing && run.Counts[name] > 0 && run.Failures[name] == 0 {
				continue
			}
			in := pack{p.Dir, p.Tags}
			if wanted[in] == nil {
				order = append(order, in)
			}
			wanted[in] = append(wanted[in], p)
		}
	}
	var failed []error
	for _, in := range order {
		fmt.Fprintf(os.Stderr, "%s: %s\n", in.dir, console.Counted(len(wanted[in]), "test"))
		if err := o.runPack(ctx, in, wanted[in], &run); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", in.dir, err))
		}
	}
	maps.DeleteFunc(run.Counts, func(name string, _ int) bool { return !known[name] })
	maps.DeleteFunc(run.Failures, func(name string, n int) bool { return !known[name] || n == 0 })
	for _, n := range run.Failures {
		run.Violations += n
	}
	run.Size = console.Counted(len(run.Counts), "test") + " by name"
	r.Put(run)
	return errors.Join(failed...)
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
	passed, broken, printed := outcomes(out)
	for _, p := range proofs {
		run.Counts[p.String()], run.Failures[p.String()] = passed[p.Name], broken[p.Name]
		if passed[p.Name] == 0 && err == nil {
			err = fmt.Errorf("%s did not run, or was skipped", p.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, printed)
	}
	return nil
}

// outcomes returns how often each test has passed and failed, and the output of the failed tests.
func outcomes(text []byte) (passed, failed map[string]int, printed string) {
	passed, failed = map[string]int{}, map[string]int{}
	output := make(map[string][]byte)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return passed, failed, printed
		} else if err != nil {
			return passed, failed, printed + err.Error()
		}
		switch e.Action {
		case "pass":
			passed[e.Test]++
		case "fail":
			failed[e.Test]++
			printed += string(output[e.Test])
		case "output", "build-output":
			output[e.Test] = append(output[e.Test], e.Output...)
		}
	}
}
