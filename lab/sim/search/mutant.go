package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// A mutant is a bug that is planted on purpose, to see that the simulator
// finds it. Planting it means to build this program anew, with one line of its
// source replaced, and to let that program search; it is told with --planted
// which mutant it is.

// lastWords is how long the mutant may take to stop by itself when the user
// interrupts, before it is killed.
const lastWords = 10 * time.Second

func (s *Job) mutantNames() []string {
	var names []string
	for _, m := range s.Mutants {
		names = append(names, m.Name)
	}
	return names
}

// noSuchMutant says which mutants may have been meant.
func (s *Job) noSuchMutant() error {
	const most = 3 // to propose
	closest := ""
	if near := settings.Nearest(s.Mutant, s.mutantNames(), most); len(near) > 0 {
		closest = "the closest: " + strings.Join(near, ", ") + "; "
	}
	return fmt.Errorf("--mutant %q: there is no such mutant; %s--list-mutants lists all", s.Mutant, closest)
}

func (s *Job) runMutant(ctx context.Context, out, errs io.Writer) (Outcome, error) {
	m, _ := mutant.Find(s.Mutants, s.Mutant)
	if screen := console.New(errs); !s.JSON || screen.Terminal {
		screen.Say("planting %s: %s\n", m.Name, m.Why())
	}
	dir, err := os.MkdirTemp("", "leasehold-mutant-")
	if err != nil {
		return Passed, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's temporary directory is cleared anyway
	program := filepath.Join(dir, "leasehold")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := m.Build(ctx, "./cmd/leasehold-lab", program); err != nil {
		if ctx.Err() != nil {
			return Interrupted, nil
		}
		return Passed, err
	}
	child := exec.CommandContext(ctx, program, append(strings.Fields(s.Command), plantedArgs(s.Flags, m)...)...)
	child.Stdout, child.Stderr = out, errs
	return runProgram(ctx, child)
}

// plantedArgs are the arguments of the mutant's own search: what the user
// said, with defaults that suit a bug that is known to be there.
func plantedArgs(flags *pflag.FlagSet, m mutant.Mutant) []string {
	args := []string{"--planted=" + m.Name}
	if !flags.Changed("seeds") {
		args = append(args, fmt.Sprintf("--seeds=%d", m.Seeds))
	}
	args = append(args, strings.Fields(m.World)...) // what the user said comes later, and wins
	if !flags.Changed("stop-after") {
		args = append(args, "--stop-after=1")
	}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "mutant" && f.Name != "planted" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// runProgram runs a mutant in our place: its output is ours, and so is its outcome.
func runProgram(ctx context.Context, child *exec.Cmd) (Outcome, error) {
	// A terminal sends its Ctrl-C to both of us. A second signal from here would
	// keep the child from printing its summary.
	child.Cancel = func() error { return nil }
	child.WaitDelay = lastWords
	err := child.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil && (!errors.As(err, &ended) || ended.ExitCode() < 0):
		return Interrupted, nil
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return outcomeOf(ended.ExitCode())
	case err != nil:
		return Passed, fmt.Errorf("running the program with the planted bug: %w", err)
	}
	return Survived, nil
}

func outcomeOf(status int) (Outcome, error) {
	if o := Outcome(status); slices.Contains([]Outcome{Passed, Violated, Survived, Interrupted}, o) {
		return o, nil
	}
	return Passed, fmt.Errorf("the program with the planted bug ended with status %d", status)
}
