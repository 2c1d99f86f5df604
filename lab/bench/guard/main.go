package main

import (
	"context"
	"flag"
	"os"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "What do the hot paths cost, in instructions and allocations? Time is too noisy for a test; these are the same on a busy machine. `make test`\n" +
	"fails if a path makes an allocation more than is recorded in `lab/bench/guard/recorded.json`, and this also if it takes 10 % more instructions. After a change that is worth it,\n" +
	"`cd lab/bench && go run ./guard -record` writes down what it costs now."

func main() {
	if len(os.Args) == 4 && os.Args[1] == childRole {
		os.Exit(playChild(os.Args[2], os.Args[3] == "true"))
	}
	var record bool
	report.Main(report.Benchmark{
		Name: "guard", Number: 9, Title: "Regression guard", About: about, Rounds: 1, Quick: 1,
		Flags: func(flags *flag.FlagSet) {
			flags.BoolVar(&record, "record", false, "write down what the paths cost now")
		},
		Run: func(ctx context.Context, r *report.Run) error { return run(ctx, r, record) },
	})
}

func run(ctx context.Context, r *report.Run, write bool) error {
	r.Expect(len(paths()))
	costs, untraced := countAll(ctx, true, func(name string) { r.Step("%s", name) })
	if costs == nil {
		return untraced
	}
	if untraced != nil {
		r.Skip("instructions", untraced)
	}
	if write {
		if untraced != nil {
			return untraced
		}
		if err := newRecord(costs).write(recordFile); err != nil {
			return err
		}
	}
	recorded, err := readRecord(recordFile)
	if err != nil {
		return err
	}
	if err := recorded.fits(); err != nil {
		r.Skip("comparing instructions", err)
	}
	r.Add(report.Section{Table: compared(costs, recorded)})
	worse := recorded.worse(costs)
	r.Want("paths that cost more than recorded: none", float64(len(worse)), "", len(worse) == 0)
	for _, text := range worse {
		r.Note("WORSE %s", text)
	}
	return nil
}

func compared(costs map[string]cost, recorded *record) *report.Table {
	t := report.NewTable("", "path", "instructions", "recorded", "allocations", "recorded")
	for _, p := range paths() {
		c, ok := costs[p.name]
		if !ok {
			continue
		}
		before := recorded.Paths[p.name]
		instructions := "not counted"
		if c.Instructions > 0 {
			instructions = report.Thousands(float64(c.Instructions))
		}
		t.Add(p.name, instructions, before.Instructions, c.Allocations, before.Allocations)
	}
	return t
}
