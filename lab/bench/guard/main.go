// Command guard counts the instructions and allocations of the hot paths, and compares
// them with the recorded ones.
//
//	cd lab/bench && go run ./guard           counts and compares
//	cd lab/bench && go run ./guard -record   records the current costs
//
// The test of this package checks only allocations. The commit message of a new record
// gives the reason.
//
// # How instructions are counted
//
// A child process, which is this program again, executes the path a few times between
// breakpoints. The parent traces it with ptrace: it stops all other threads, so that
// neither scheduler nor garbage collector interfere, and single-steps the one that runs
// the path. The minimum of some repetitions counts. The child's clock stands still: the
// parent emulates clock_gettime, whose own instructions differ between machines and are
// not counted.
//
// The load of the machine changes the duration, but not the numbers: at each instruction
// one process waits for the other. Both are pinned to one core. After a time limit the
// child is killed, and the remaining paths are not counted.
//
// Tracing requires Linux on amd64 and the permission to trace a child. Without it only
// allocations are compared, and the output reports that. Instructions are compared only
// with a record of the same Go release.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The cost of hot paths in instructions and allocations, which do not depend on the load of the host. `make test` fails on one more\n" +
	"allocation than `lab/bench/guard/recorded.json` has, and this benchmark on 10 % more instructions. `cd lab/bench && go run ./guard\n" +
	"-record` records new values."

func main() {
	if len(os.Args) == 4 && os.Args[1] == childRole {
		os.Exit(playChild(os.Args[2], os.Args[3] == "true"))
	}
	var record bool
	report.Main(report.Benchmark{
		Name: "guard", Number: 9, Title: "Regression guard", About: about, Rounds: 1, Quick: 1,
		Flags: func(flags *flag.FlagSet) {
			flags.BoolVar(&record, "record", false, "record the current costs")
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
		if err := report.WriteJSON(recordFile, newRecord(costs)); err != nil {
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

// recordFile is the file with recorded costs, relative to lab/bench.
var recordFile = filepath.Join("guard", "recorded.json")

type record struct {
	Go     string          `json:"go"` // the release
	System string          `json:"system"`
	Paths  map[string]cost `json:"paths"`
}

// mostMore is the tolerated increase of instructions: smaller ones come from the compiler or
// the layout of maps.
const mostMore = 0.10

func newRecord(costs map[string]cost) *record {
	return &record{Go: release(runtime.Version()), System: runtime.GOOS + "/" + runtime.GOARCH, Paths: costs}
}

// release returns a Go version without the patch: go1.26 of go1.26.8.
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func readRecord(file string) (*record, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the record: %w; create it with go run ./guard -record in lab/bench", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w; create it again with go run ./guard -record in lab/bench", file, err)
	}
	return &r, nil
}

// fits returns an error if instructions are not comparable with those of this program.
func (r *record) fits() error {
	here := newRecord(nil)
	if r.Go != here.Go || r.System != here.System {
		return fmt.Errorf("recorded with %s on %s, this is %s on %s: record again with go run ./guard -record",
			r.Go, r.System, here.Go, here.System)
	}
	return nil
}

// worse returns the paths that cost more than recorded, and those missing on either side.
func (r *record) worse(costs map[string]cost) []string {
	var worse []string
	emit := func(format string, args ...any) { worse = append(worse, fmt.Sprintf(format, args...)) }
	for _, p := range paths() {
		now, counted := costs[p.name]
		if !counted {
			continue
		}
		before, known := r.Paths[p.name]
		if !known {
			emit("%s: not recorded: go run ./guard -record in lab/bench", p.name)
			continue
		}
		if r.fits() == nil && float64(now.Instructions) > float64(before.Instructions)*(1+mostMore) {
			emit("%s: %d instructions, recorded %d (%s)", p.name, now.Instructions, before.Instructions,
				report.Percent(float64(now.Instructions)/float64(before.Instructions)-1))
		}
		if now.Allocations > before.Allocations {
			emit("%s: %v allocations, recorded %v", p.name, now.Allocations, before.Allocations)
		}
	}
	for name := range r.Paths {
		if _, err := pathNamed(name); err != nil {
			emit("%s: recorded, but no longer a path: go run ./guard -record in lab/bench", name)
		}
	}
	return worse
}
