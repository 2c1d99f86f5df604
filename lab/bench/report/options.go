package report

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

type options struct {
	chosen []selection
	rounds int
	quick  bool
	page   bool
	docs   string
	dir    string
}

func parse(all []*Benchmark, args []string, help io.Writer) (*options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&o.quick, "quick", false, "only the headlines, as a table and as JSON lines, in seconds")
	flags.BoolVar(&o.page, "page", false, "only write the page in -docs from the stored results")
	flags.IntVar(&o.rounds, "rounds", 0, "turns of each contestant (default that of the benchmark)")
	flags.StringVar(&o.docs, "docs", "", "directory of BENCHMARKS.md: store results and write the page")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "directory on a disk for temporary files")
	only := flags.String("only", "", "benchmarks or parts, separated by commas: "+strings.Join(names(all), ", ")+" (default all benchmarks)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 0 || o.rounds > 1000:
		return nil, fmt.Errorf("%d rounds: want 1 to 1000", o.rounds)
	case o.quick && o.docs != "":
		return nil, errors.New("-docs excludes -quick: quick results are too rough")
	case o.page && o.docs == "":
		return nil, errors.New("-page requires -docs")
	}
	var err error
	o.chosen, err = choose(all, *only, o.quick)
	return &o, err
}

// names returns all values of -only.
func names(all []*Benchmark) (out []string) {
	for _, b := range all {
		out = append(out, b.Name)
		for _, part := range slices.Concat(b.Parts, b.Long) {
			out = append(out, b.Name+"/"+part)
		}
	}
	return out
}

// A selection is a benchmark and the parts to run.
type selection struct {
	*Benchmark
	parts []string
}

// choose returns the benchmarks that -only selects, in the order of all.
func choose(all []*Benchmark, only string, quick bool) (chosen []selection, err error) {
	words := strings.Split(only, ",")
	if only == "" {
		words = nil
	}
	for _, w := range words {
		if !slices.Contains(names(all), w) {
			return nil, fmt.Errorf("unknown name %q: want some of %s", w, strings.Join(names(all), ", "))
		}
	}
	for _, b := range all {
		s := selection{Benchmark: b, parts: b.Parts}
		whole := words == nil || slices.Contains(words, b.Name)
		if !whole {
			s.parts = slices.DeleteFunc(slices.Concat(b.Parts, b.Long), func(part string) bool { return !slices.Contains(words, b.Name+"/"+part) })
		} else if quick && b.QuickPart != "" {
			s.parts = []string{b.QuickPart}
		}
		if whole || len(s.parts) > 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// only returns the value of -only for this selection alone.
func (s selection) only() string {
	if slices.Equal(s.parts, s.Parts) {
		return s.Name
	}
	var words []string
	for _, part := range s.parts {
		words = append(words, s.Name+"/"+part)
	}
	return strings.Join(words, ",")
}

// command returns the command line that repeats the run.
func (s selection) command(o *options) string {
	line := "cd lab/bench && go run . -only " + s.only()
	if o.rounds > 0 {
		line += fmt.Sprintf(" -rounds %d", o.rounds)
	}
	return line
}
