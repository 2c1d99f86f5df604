package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// recordFile is where costs are recorded, in bench/.
var recordFile = filepath.Join("guard", "recorded.json")

// A record is what paths cost when it was written.
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

func (r *record) write(file string) error {
	return report.WriteJSON(file, r)
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
