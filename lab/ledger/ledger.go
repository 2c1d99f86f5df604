package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/console"
)

// firstSeed is above the seeds of tests and of development.
const firstSeed = 100_000_001

// An entry is what one commit has passed: seeds of one kind, without a gap.
type entry struct {
	Commit     string  `json:"commit"`
	Kind       string  `json:"kind"`
	First      uint64  `json:"first"`
	Seeds      uint64  `json:"seeds"`
	Hours      float64 `json:"simulatedHours"`
	Seconds    float64 `json:"seconds"`
	Faults     int     `json:"faults"`
	Violations int     `json:"violations"`
	Date       string  `json:"date"` // of the last block
}

// A ledger is all entries, in the order of their first blocks.
type ledger []entry

func read(file string) (ledger, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l ledger
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return l, nil
}

func (l ledger) write() error {
	text, err := json.MarshalIndent(l, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(ledgerFile, append(text, '\n'), 0o644), //nolint:gosec // in the repository, for all readers
		os.WriteFile(pageFile, []byte(l.page()), 0o644))     //nolint:gosec // the same
}

// nextSeed returns the first seed of a kind that no commit has used.
func (l ledger) nextSeed(kind string) uint64 {
	next := uint64(firstSeed)
	for _, e := range l {
		if e.Kind == kind {
			next = max(next, e.First+e.Seeds)
		}
	}
	return next
}

// next returns the kind on which the least time was spent with this commit.
func (l ledger) next(commit string, chosen []kind) kind {
	spent := func(k kind) (seconds float64) {
		for _, e := range l {
			if e.Commit == commit && e.Kind == k.name {
				seconds += e.Seconds
			}
		}
		return seconds
	}
	return slices.MinFunc(chosen, func(a, b kind) int { return cmp.Compare(spent(a), spent(b)) })
}

// add adds a block. It extends the entry of the commit if that ends at the first seed of the block.
func (l *ledger) add(commit, kind string, first uint64, r result) {
	i := slices.IndexFunc(*l, func(e entry) bool { return e.Commit == commit && e.Kind == kind && e.First+e.Seeds == first })
	if i < 0 {
		i = len(*l)
		*l = append(*l, entry{Commit: commit, Kind: kind, First: first})
	}
	e := &(*l)[i]
	e.Seeds += r.Seeds
	e.Hours += r.Hours
	e.Seconds += r.Seconds
	for _, n := range r.Faults {
		e.Faults += n
	}
	e.Violations += r.Violations
	e.Date = time.Now().UTC().Format(time.DateOnly)
}

const intro = `# Ledger

<!-- written by go run ./lab/ledger; do not edit -->

Worlds that the [simulator](RELIABILITY.md#simulator) has run with ` + "`make verify-night`" + `. Each run continues with seeds that
no run has used before, so the numbers add up. A violation stops the run.

`

// page returns docs/LEDGER.md.
func (l ledger) page() string {
	var b strings.Builder
	b.WriteString(intro + "## All commits\n\n" + header("kind", "worlds") + "\n")
	for _, k := range kinds {
		of := l.where(func(e entry) bool { return e.Kind == k.name })
		b.WriteString(row(k.name, k.what, of))
	}
	b.WriteString(row("all", "", l))
	b.WriteString("\n## By commit\n\n" + header("commit", "date") + "\n")
	for _, commit := range slices.Backward(l.commits()) {
		of := l.where(func(e entry) bool { return e.Commit == commit })
		b.WriteString(row("`"+commit+"`", of[len(of)-1].Date, of))
	}
	b.WriteString("\n## Commands\n\nSeeds start at " + fmt.Sprint(firstSeed) + ".\n\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "- %s: `%s`\n", k.name, k.command(firstSeed, k.seeds))
	}
	return b.String()
}

func header(first, second string) string {
	return fmt.Sprintf("| %s | %s | seeds | simulated hours | faults | violations |\n|---|---|---:|---:|---:|---:|", first, second)
}

// row returns a row of a table, with the sums of some entries.
func row(first, second string, of ledger) string {
	var sum entry
	for _, e := range of {
		sum.Seeds += e.Seeds
		sum.Hours += e.Hours
		sum.Faults += e.Faults
		sum.Violations += e.Violations
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d |\n", first, second, console.Grouped(sum.Seeds), console.Grouped(uint64(sum.Hours)),
		console.Grouped(uint64(sum.Faults)), sum.Violations) //nolint:gosec // not negative
}

func (l ledger) where(is func(entry) bool) (out ledger) {
	for _, e := range l {
		if is(e) {
			out = append(out, e)
		}
	}
	return out
}

// commits returns the commits in the order of their first entries.
func (l ledger) commits() (all []string) {
	for _, e := range l {
		if !slices.Contains(all, e.Commit) {
			all = append(all, e.Commit)
		}
	}
	return all
}
