package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/fleasesim"
	"github.com/leasehold-dev/leasehold/internal/fleasesim/explore"
	"github.com/leasehold-dev/leasehold/internal/mutant"
)

// A fleaseSimReport is how a campaign went, as a script wants to know it. Fields
// may be added; none is renamed or removed.
type fleaseSimReport struct {
	Seeds     int       `json:"seeds"`
	FirstSeed uint64    `json:"firstSeed"`
	Mutant    string    `json:"mutant,omitempty"`
	Failed    int       `json:"violations"`
	Failures  []failure `json:"failures"`
	Hours     float64   `json:"simulatedHours"`
	Elapsed   float64   `json:"elapsedSeconds"`
	Events    uint64    `json:"events"`
	Messages  uint64    `json:"messages"`
	Worlds    tally     `json:"worlds"`
	ByCheck   tally     `json:"checksByInvariant"`
	Faults    tally     `json:"faults"`
	Notices   tally     `json:"notices"`
	Hash      string    `json:"traceHash"`
}

func (o *fleaseSimOptions) report(s *fleasesim.Summary) *fleaseSimReport {
	r := &fleaseSimReport{
		Seeds: s.Seeds, FirstSeed: o.campaign.First, Mutant: o.planted, Failed: len(s.Failures), Failures: []failure{},
		Hours: s.Simulated.Hours(), Elapsed: s.Elapsed.Seconds(), Events: s.Events, Messages: s.Messages,
		Worlds: s.Kinds, ByCheck: s.Checks, Faults: s.Faults, Notices: s.Notices, Hash: hashText(s.Hash),
	}
	for _, f := range s.Failures {
		r.Failures = append(r.Failures, failure{Seed: f.Seed, Invariant: f.Invariant, At: f.At.String(), Text: f.Text, Replay: o.replay(f.Seed)})
	}
	return r
}

// replay is the command that shows what happened in the world of a seed.
func (o *fleaseSimOptions) replay(seed uint64) string {
	words := []string{"go run ./cmd/leasehold flease sim"}
	if o.planted != "" {
		words = append(words, "--mutant", o.planted)
	}
	words = append(words, fmt.Sprintf("--seed %d --seeds 1 --trace", seed))
	o.world.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != f.DefValue {
			words = append(words, "--"+f.Name, f.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// runExplorer tries everything, scenario by scenario.
func (o *fleaseSimOptions) runExplorer(ctx context.Context, out io.Writer) error {
	violated := false
	for _, s := range explore.Scenarios(o.explore, int8(o.detours)) {
		r, err := explore.Explore(ctx, s)
		if err != nil && ctx.Err() == nil {
			return failed{err}
		}
		text := r.String() + "\n"
		if v := r.Violated; v != nil {
			violated = true
			text += fmt.Sprintf("%s  %s\n%s\n", bad("VIOLATION"), v.Text, indented(strings.Join(v.Path, "\n")))
		}
		if err := write(out, text); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return o.status(violated, ctx.Err() != nil)
}

func listFleaseMutants(out io.Writer) error {
	var names strings.Builder
	for _, m := range mutant.Fleases() {
		names.WriteString(m.Name + "\n")
	}
	return write(out, names.String())
}

// runMutant builds this program anew with a bug in it, and lets it search.
func (o *fleaseSimOptions) runMutant(cmd *cobra.Command) error {
	m, ok := mutant.FindFlease(o.mutant)
	if !ok {
		var names []string
		for _, m := range mutant.Fleases() {
			names = append(names, m.Name)
		}
		return noSuchMutant(o.mutant, names)
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
	if err := mutant.Build(cmd.Context(), m, program); err != nil {
		if cmd.Context().Err() != nil {
			return statusInterrupted
		}
		return failed{err}
	}
	return runProgram(cmd, program, append([]string{"flease"}, plantedArgs(cmd.Flags(), m)...))
}
