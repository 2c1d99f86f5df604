package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

func main() {
	var only string
	report.Main(report.Benchmark{
		Name: "balance", Number: 7, Title: "Balance", About: about, Rounds: 3, Quick: 1,
		Modules: []string{"github.com/buraksezer/consistent"},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&only, "only", "", "parts, separated by commas: zipf, figure10, hot, members (default all, with -quick zipf)")
		},
		Run: func(ctx context.Context, r *report.Run) error { return run(ctx, r, only) },
	})
}

func run(ctx context.Context, r *report.Run, only string) error {
	if only == "" && r.Quick {
		only = zipfPart
	}
	asked, err := report.Only(only, scenarios(), func(s scenario) string { return s.name })
	if err != nil {
		return err
	}
	steps := 0
	for _, s := range asked {
		steps += s.seeds(r.Rounds)
	}
	r.Expect(steps)
	for _, s := range asked {
		trials, err := s.try(ctx, s.seeds(r.Rounds), func(text string) { r.Step("%s", text) })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		conclude(r.Result, s, trials)
	}
	return nil
}
