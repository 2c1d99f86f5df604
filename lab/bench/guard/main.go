// Command guard counts what the hot paths cost, in instructions and allocations,
// and compares it with what was recorded.
//
//	cd lab/bench && go run ./guard           counts, and compares
//	cd lab/bench && go run ./guard -record   writes down what it costs now
//
// The test of this package fails for allocations alone. After -record, the commit
// message gives the reason.
//
// # How instructions are counted
//
// A child, which is this program again, does the thing a few times between
// breakpoints. Its parent traces it: all its other threads are stopped, so that
// neither the scheduler nor a collector has a part in it, and the one that works
// goes on instruction by instruction, which are counted. The least of some
// repetitions counts. For that one, the clock stands still: its parent answers when
// it reads one. How many instructions the kernel's own answer takes, which differs
// from machine to machine, is left out.
//
// How busy the machine is changes nothing about the numbers, but much about the time:
// at each instruction one process waits for the other. Both stay on one core, so that
// they hand over without waking another. If it takes too long all the same, the child is
// killed, and the paths that are left are not counted.
//
// That needs Linux on amd64, and the permission to trace a child. Where it cannot
// be done, allocations alone are compared, and the output says so. Compilers
// differ, too: instructions are compared only with those that the same release of
// Go led to.
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

// recordFile is where costs are recorded, in bench/.
var recordFile = filepath.Join("guard", "recorded.json")

type record struct {
	Go     string          `json:"go"` // the release that built it
	System string          `json:"system"`
	Paths  map[string]cost `json:"paths"`
}

// mostMore is by how much a path may cost more: below that, it is an accident of
// the compiler, or of where a map keeps things.
const mostMore = 0.10

func newRecord(costs map[string]cost) *record {
	return &record{Go: release(runtime.Version()), System: runtime.GOOS + "/" + runtime.GOARCH, Paths: costs}
}

// release is the version of Go without its patches: go1.26 of go1.26.8.
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func readRecord(file string) (*record, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("what was recorded: %w; go run ./guard -record in bench writes it", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w; go run ./guard -record in bench writes it again", file, err)
	}
	return &r, nil
}

// fits reports why instructions cannot be compared with those of this program.
func (r *record) fits() error {
	here := newRecord(nil)
	if r.Go != here.Go || r.System != here.System {
		return fmt.Errorf("they were recorded with %s on %s, and this is %s on %s: record anew with go run ./guard -record",
			r.Go, r.System, here.Go, here.System)
	}
	return nil
}

// worse says which paths cost more than recorded, and which are missing on either
// side.
func (r *record) worse(costs map[string]cost) []string {
	var worse []string
	say := func(format string, args ...any) { worse = append(worse, fmt.Sprintf(format, args...)) }
	for _, p := range paths() {
		now, counted := costs[p.name]
		if !counted {
			continue
		}
		before, known := r.Paths[p.name]
		if !known {
			say("%s: nothing is recorded: go run ./guard -record in bench does it", p.name)
			continue
		}
		if r.fits() == nil && float64(now.Instructions) > float64(before.Instructions)*(1+mostMore) {
			say("%s: %d instructions, %d were recorded (%s)", p.name, now.Instructions, before.Instructions,
				report.Percent(float64(now.Instructions)/float64(before.Instructions)-1))
		}
		if now.Allocations > before.Allocations {
			say("%s: %v allocations, %v were recorded", p.name, now.Allocations, before.Allocations)
		}
	}
	for name := range r.Paths {
		if _, err := pathNamed(name); err != nil {
			say("%s: it is recorded, and is no path any more: go run ./guard -record in bench forgets it", name)
		}
	}
	return worse
}
