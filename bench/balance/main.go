package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

func main() {
	var only string
	kit.Main(kit.Question{
		Name: "balance", Number: 7, Title: "Balance", Asks: whatItAsks, Rounds: 3, Quick: 1,
		Modules: []string{"github.com/buraksezer/consistent"},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&only, "only", "", "one part: zipf, figure10, hot or members (default all, with -quick zipf)")
		},
		Run: func(ctx context.Context, r *kit.Run) error { return run(ctx, r, only) },
	})
}

func run(ctx context.Context, r *kit.Run, only string) error {
	if only == "" && r.Quick {
		only = zipfPart
	}
	asked := scenarios()
	if only != "" {
		asked = slices.DeleteFunc(asked, func(s scenario) bool { return s.name != only })
	}
	if len(asked) == 0 {
		return fmt.Errorf("-only %s: want zipf, figure10, hot or members", only)
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
		report(r.Result, s, trials)
	}
	return nil
}
