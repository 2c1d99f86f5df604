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

// A mutant is a planted bug, to test that the simulator finds it. The command builds itself again with one
// line of its source replaced, and runs the result, which does the search. The flag --planted contains the
// name of the mutant.

// shutdownTimeout is the time that the mutant may take to stop by itself when the user interrupts, before it
// is killed.
const shutdownTimeout = 10 * time.Second

func (s *Job) mutantNames() []string {
	var names []string
	for _, m := range s.Mutants {
		names = append(names, m.Name)
	}
	return names
}

// noSuchMutant returns an error with the closest names.
func (s *Job) noSuchMutant() error {
	const most = 3 // suggestions
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
	defer func() { _ = os.RemoveAll(dir) }() // the system clears its temporary directory
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

// plantedArgs returns the arguments of the mutant's search: the user's flags, with defaults for a search that
// must find a violation.
func plantedArgs(flags *pflag.FlagSet, m mutant.Mutant) []string {
	args := []string{"--planted=" + m.Name}
	if !flags.Changed("seeds") {
		args = append(args, fmt.Sprintf("--seeds=%d", m.Seeds))
	}
	args = append(args, strings.Fields(m.World)...) // the user's flags come later, and take precedence
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

// runProgram runs a mutant as a replacement of this process: with its output and its outcome.
func runProgram(ctx context.Context, child *exec.Cmd) (Outcome, error) {
	// A terminal sends Ctrl-C to both processes. A second signal from here would prevent the summary of the
	// child.
	child.Cancel = func() error { return nil }
	child.WaitDelay = shutdownTimeout
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
