package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

const module = "github.com/leasehold-dev/leasehold"

// programs are the simulators: leasehold-lab, and the tests of lab/procsim.
type programs struct {
	dir            string
	lab, processes string
}

func build(ctx context.Context) (p *programs, err error) {
	dir, err := os.MkdirTemp("", "leasehold-ledger-")
	if err != nil {
		return nil, err
	}
	p = &programs{dir: dir, lab: filepath.Join(dir, "leasehold-lab"), processes: filepath.Join(dir, "procsim.test")}
	for _, args := range [][]string{
		{"build", "-o", p.lab, module + "/cmd/leasehold-lab"},
		{"test", "-c", "-o", p.processes, module + "/lab/procsim"},
	} {
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			p.remove()
			return nil, fmt.Errorf("building the simulators: %w\n%s", err, out)
		}
	}
	return p, nil
}

func (p *programs) remove() { _ = os.RemoveAll(p.dir) } // in the temporary directory

// simulateProcesses divides worlds of whole processes among the processors: one process each, with a single processor, for
// replays.
func (p *programs) simulateProcesses(ctx context.Context, first, seeds uint64) (sum result, err error) {
	n := uint64(runtime.NumCPU()) //nolint:gosec // positive
	parts, errs := make([]result, n), make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		from, to := seeds*i/n, seeds*(i+1)/n
		running.Go(func() { parts[i], errs[i] = p.simulatePart(ctx, first+from, to-from) })
	}
	running.Wait()
	sum = result{Ended: "completed", Faults: make(map[string]int)}
	for i, part := range parts {
		sum.add(part)
		if part.Ended != "completed" {
			sum.Ended, err = part.Ended, errs[i]
		}
	}
	return sum, err
}

func (p *programs) simulatePart(ctx context.Context, first, seeds uint64) (r result, err error) {
	report := filepath.Join(p.dir, fmt.Sprintf("%d.json", first))
	_, failed := output(ctx, []string{"GOMAXPROCS=1"}, p.processes, "-test.timeout=0", "-test.run=^"+processTest+"$",
		fmt.Sprintf("-first=%d", first), fmt.Sprintf("-worlds=%d", seeds), "-report="+report)
	text, err := os.ReadFile(report)
	return decode(text, cmp.Or(failed, err))
}

// add adds a part of a block that was run at the same time as the others.
func (r *result) add(part result) {
	r.Seeds += part.Seeds
	r.Violations += part.Violations
	r.Hours += part.Hours
	r.Seconds = max(r.Seconds, part.Seconds)
	for kind, n := range part.Faults {
		r.Faults[kind] += n
	}
}

// output runs a program. The error has what it wrote.
func output(ctx context.Context, env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, errs.String(), tail(out))
	}
	return out, err
}

// tail is the end of a long output.
func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }

// decode decodes a report. A program that finds a violation also returns an error.
func decode(text []byte, err error) (r result, _ error) {
	if decoded := json.Unmarshal(text, &r); decoded != nil {
		return r, fmt.Errorf("no report: %w", cmp.Or(err, decoded))
	}
	return r, err
}
