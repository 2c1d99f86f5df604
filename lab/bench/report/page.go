package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/console"
)

const (
	pageFile = "BENCHMARKS.md"
	// resultsDir is the directory of results below that of the documents.
	resultsDir = "benchmarks"
)

// store writes the result under the directory of the documents.
func (r *Result) store(docs string) error {
	dir := filepath.Join(docs, resultsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages for all readers
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.Benchmark+".json"), []byte(console.JSON(r)), 0o644) //nolint:gosec // the same
}

func loadResults(docs string) (all []*Result, err error) {
	files, err := filepath.Glob(filepath.Join(docs, resultsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r := &Result{}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, r)
		}
		if err == nil && r.Benchmark == "" {
			err = errors.New("no benchmark name")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; run its benchmark again with -docs", file, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Result) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// writePage writes the page from all stored results.
func writePage(docs string) error {
	all, err := loadResults(docs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, pageFile), []byte(page(all)), 0o644) //nolint:gosec // for all readers
}

const pageIntro = `# Benchmarks

<!-- Written by "make bench" from docs/benchmarks/*.json. Change the benchmarks in lab/bench, not this page. -->

Each section was measured in one run with what it is compared with; the command beside it repeats that. Contestants take turns, and medians are compared;
low and high are those of the turns. Do not compare numbers of different runs: the speed of the host varies by tens of percent.

    make bench        # all benchmarks, and this page; half an hour on two idle cores
    make bench-quick  # the headlines, in minutes, as a table and as JSON lines

"Times better" is the peer's cost over ours, or our rate over the peer's; below 1 the peer is better. Some peers are lower bounds that do less: an index read,
a clock reading. The last section has [what we lose, and why](#what-we-lose-and-why), and missed goals. Versions of peers are those in lab/go.mod.

`

func page(all []*Result) string {
	var b strings.Builder
	b.WriteString(pageIntro)
	writeSummary(&b, all)
	for _, r := range all {
		writeResult(&b, r)
	}
	writeLosses(&b, all)
	return b.String()
}

func writeSummary(b *strings.Builder, all []*Result) {
	t := NewTable("", "question", "what", "ours", "unit", "peer", "peer's", "times better")
	met, goals := 0, 0
	for _, r := range all {
		for _, h := range r.Headlines {
			name := strings.TrimPrefix(h.Name, r.Benchmark+".")
			t.Add(link(r), name, h.Value, h.Unit, h.Peer, h.PeerValue, h.Ratio)
		}
		goals += len(r.Goals)
		met += len(r.Goals) - r.Missed()
	}
	fmt.Fprintf(b, "## Headlines\n\n%s\n%d of %d goals are met.\n\n", t.Markdown(), met, goals)
}

func link(r *Result) string { return fmt.Sprintf("[%s](#%s)", r.Benchmark, anchor(heading(r))) }

func heading(r *Result) string { return fmt.Sprintf("%d. %s", r.Number, r.Title) }

// anchor returns the anchor of a heading, as Markdown renderers derive it: lower case, blanks as
// hyphens, no punctuation.
func anchor(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c > 127:
			return c
		}
		return -1
	}, strings.ToLower(heading))
}

func writeResult(b *strings.Builder, r *Result) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n    %s\n\n", heading(r), strings.TrimSpace(r.About), r.Command)
	for _, s := range r.Sections {
		writeSection(b, s)
	}
	if len(r.Goals) > 0 {
		fmt.Fprintf(b, "%s\n", r.goalTable().Markdown())
	}
	fmt.Fprintf(b, "Measured on %s, in %s s on: %s.\n\n", r.Date, Number(r.Seconds), r.Machine)
}

func writeSection(b *strings.Builder, s Section) {
	if s.Title != "" {
		fmt.Fprintf(b, "### %s\n\n", s.Title)
	}
	if s.Text != "" {
		fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(s.Text))
	}
	if s.Table == nil {
		return
	}
	if s.Table.Title != "" {
		fmt.Fprintf(b, "%s:\n\n", s.Table.Title)
	}
	fmt.Fprintf(b, "%s\n", s.Table.Markdown())
}

func writeLosses(b *strings.Builder, all []*Result) {
	b.WriteString("## What we lose, and why\n\n")
	for _, r := range all {
		for _, l := range r.Losses {
			fmt.Fprintf(b, "- %s: %s\n", link(r), strings.TrimSpace(l))
		}
		for _, g := range r.Goals {
			if !g.Met {
				fmt.Fprintf(b, "- %s, missed goal: %s; it is %s.\n", link(r), g.Want, g.Have)
			}
		}
	}
}
