package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	ratesFile = "lab/mutagen/rates.json"
	pageFile  = "docs/MUTANTS.md"
)

// A rate has the figures of a package.
type rate struct {
	Mutants    int            `json:"mutants"` // that compile
	Run        int            `json:"run"`
	Killed     map[string]int `json:"killed"` // by stage
	Equivalent int            `json:"equivalent"`
	Floor      float64        `json:"floor"` // the best percentage so far
	Date       string         `json:"date"`
}

func (r rate) killed() (n int) {
	for _, k := range r.Killed {
		n += k
	}
	return n
}

// open returns the number of survivors without a reason.
func (r rate) open() int { return r.Run - r.killed() - r.Equivalent }

// percent returns the kill rate, rounded down to a tenth.
func (r rate) percent() float64 {
	if r.Run == r.Equivalent {
		return 0
	}
	return math.Floor(1000*float64(r.killed())/float64(r.Run-r.Equivalent)) / 10
}

// measure counts results.
func measure(p *pkg, r results, before rate) rate {
	now := rate{Killed: make(map[string]int), Floor: before.Floor, Date: time.Now().UTC().Format(time.DateOnly)}
	for _, m := range p.mutants() {
		now.Mutants++
		result := r.of(m)
		if result != "" {
			now.Run++
		}
		if result != "" && !isSurvivor(result) {
			now.Killed[result]++
		}
	}
	return now
}

// without excludes the survivors that have a reason. A complete run sets the floor.
func (r rate) without(reasons map[string]string) rate {
	r.Equivalent = 0
	for _, reason := range reasons {
		if reason != "" {
			r.Equivalent++
		}
	}
	if r.Run == r.Mutants {
		r.Floor = max(r.Floor, r.percent())
	}
	return r
}

func readRates() (rates map[string]rate, err error) {
	text, err := os.ReadFile(ratesFile)
	if err != nil {
		return nil, err
	}
	return rates, json.Unmarshal(text, &rates)
}

// publish writes the survivors and rates, with those of a package if there is one, and the page. A smaller sample does
// not replace a larger one. Survivors that do not exist any more are dropped.
func publish(p *pkg, r results) error {
	s, err := readSurvivors()
	if err != nil {
		return err
	}
	rates, err := readRates()
	if err != nil {
		return err
	}
	if p != nil {
		before := rates[p.dir]
		s.update(p, r)
		now := measure(p, r, before).without(s[p.dir])
		fmt.Printf("%s: %d of %d mutants run, %d killed, %d equivalent, %d open: %.1f %%\n", p.dir, now.Run, now.Mutants, now.killed(), now.Equivalent, now.open(), now.percent())
		if now.Run < now.Mutants && now.Run < before.Run {
			fmt.Printf("not published: %d were run before\n", before.Run)
			return nil
		}
		rates[p.dir] = now
	}
	for dir, of := range rates {
		gone, err := s.dropGone(dir)
		if err != nil {
			return err
		}
		of.Mutants -= gone
		of.Run -= gone
		rates[dir] = of.without(s[dir])
	}
	if err := os.WriteFile(survivorsFile, []byte(s.String()), 0o600); err != nil {
		return err
	}
	if err := writeJSON(ratesFile, rates); err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(page(rates)), 0o600)
}

const intro = `# Generated mutants

<!-- written by go run ./lab/mutagen; do not edit -->

` + "`go run ./lab/mutagen`" + ` changes the code in one place at a time: negated conditions, changed comparisons and
arithmetic, dropped operands, deleted statements, cases and fields, swapped arguments, integers off by one. Each mutant runs
against the tests of its package, then against tests of packages that use it or against simulated worlds. A kill rate is the
share of mutants that a test or a world detects. Equivalent mutants, which change nothing that can be observed, do not count;
` + "`lab/mutagen/survivors.txt`" + ` lists them with the reason, and the open survivors, which need a test. ` + "`lab/mutagen/doc.go`" + ` has
the method and the commands.

The floor is the best rate of a complete run so far: a test fails if the rate is lower. If not all mutants of a package
were run, the rate is that of a random sample, and there is no floor.

`

// page returns docs/MUTANTS.md.
func page(rates map[string]rate) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("| package | mutants | run | killed by its tests | by other stages | equivalent | open | kill rate | floor | goal | date |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	var total rate
	for _, dir := range slices.Sorted(maps.Keys(rates)) {
		r := rates[dir]
		own := r.Killed[ownTests]
		t, _ := findTarget(dir)
		floor := "sample"
		if r.Run == r.Mutants {
			floor = fmt.Sprintf("%.1f %%", r.Floor)
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %d | %d | %.1f %% | %s | %.0f %% | %s |\n", dir, r.Mutants, r.Run, own, r.killed()-own, r.Equivalent, r.open(), r.percent(), floor, t.goal, r.Date)
		total.Mutants += r.Mutants
		total.Run += r.Run
		total.Equivalent += r.Equivalent
		total.Killed = map[string]int{ownTests: total.Killed[ownTests] + own, "": total.Killed[""] + r.killed() - own}
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d | %d | %d | | | | |\n", total.Mutants, total.Run, total.Killed[ownTests], total.Killed[""], total.Equivalent, total.open())
	if missing := unmeasured(rates); len(missing) > 0 {
		b.WriteString("\nNot run yet: " + strings.Join(missing, ", ") + ".\n")
	}
	return b.String()
}

func unmeasured(rates map[string]rate) (names []string) {
	for _, t := range targets {
		if _, ok := rates[t.dir]; !ok {
			names = append(names, "`"+t.dir+"`")
		}
	}
	return names
}
