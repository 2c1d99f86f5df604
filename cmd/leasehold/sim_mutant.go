package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/mutant"
	"github.com/leasehold-dev/leasehold/internal/settings"
)

// A mutant is a bug that is planted on purpose, to see that the simulator
// finds it. Planting it means to build this program anew, with one line of its
// source replaced, and to let that program search; it is told with --planted
// which mutant it is.

// lastWords is how long the mutant may take to stop by itself when the user
// interrupts, before it is killed.
const lastWords = 10 * time.Second

func (o *simOptions) runMutant(cmd *cobra.Command) error {
	m, ok := mutant.Find(o.mutant)
	if !ok {
		return unknownMutant(o.mutant)
	}
	if errs := newScreen(cmd.ErrOrStderr()); !o.json || errs.terminal {
		errs.say("planting %s: %s\n", m.Name, m.Why())
	}
	dir, err := os.MkdirTemp("", "leasehold-mutant-")
	if err != nil {
		return failed{err}
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's temporary directory is cleared anyway
	program := filepath.Join(dir, "leasehold")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := mutant.Build(cmd.Context(), m, program); err != nil {
		if cmd.Context().Err() != nil {
			return statusInterrupted
		}
		return failed{err}
	}
	return runProgram(cmd, program, plantedArgs(cmd.Flags(), m))
}

func unknownMutant(name string) error {
	var names []string
	for _, m := range mutant.All() {
		names = append(names, m.Name)
	}
	return noSuchMutant(name, names)
}

// noSuchMutant says which mutants may have been meant.
func noSuchMutant(name string, names []string) error {
	const most = 3 // to propose
	closest := ""
	if near := settings.Nearest(name, names, most); len(near) > 0 {
		closest = "the closest: " + strings.Join(near, ", ") + "; "
	}
	return fmt.Errorf("--mutant %q: there is no such mutant; %s--list-mutants lists all", name, closest)
}

// plantedArgs are the arguments of the mutant's own search: what the user
// said, with defaults that suit a bug that is known to be there.
func plantedArgs(flags *pflag.FlagSet, m mutant.Mutant) []string {
	args := []string{"sim", "--planted=" + m.Name}
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

// runProgram runs a mutant in our place: its output is ours, and so is its
// exit status.
func runProgram(cmd *cobra.Command, program string, args []string) error {
	ctx := cmd.Context()
	child := exec.CommandContext(ctx, program, args...)
	child.Stdout, child.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	// A terminal sends its Ctrl-C to both of us. A second signal from here would
	// keep the child from printing its summary.
	child.Cancel = func() error { return nil }
	child.WaitDelay = lastWords
	err := child.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil && (!errors.As(err, &ended) || ended.ExitCode() < 0):
		return statusInterrupted
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return status(ended.ExitCode())
	case err != nil:
		return failed{fmt.Errorf("running the program with the planted bug: %w", err)}
	}
	return statusSurvived
}

func completeMutant(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	for _, m := range mutant.All() {
		names = append(names, cobra.CompletionWithDesc(m.Name, m.Why()))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
