package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// sample is a report in which all goals are met.
func sample() *report {
	of := func(rate float64) summary {
		return summary{Summary: kit.Summary{Median: rate, Low: rate / 2, High: rate * 2, Turns: 3}, Effort: 5}
	}
	r := &report{
		Command: "go run . -x", Machine: machine{Machine: kit.Machine{Load: 0.25}},
		Contest: []standing{
			{nameFlease, "x", of(300_000)},
			{nameFloor, "x", of(2_000_000)},
			{nameEtcd, "x", of(3_000)},
			{nameEtcdClient, "x", of(6_000)},
			{nameZooKeeper, "x", of(10_000)},
		},
		Disk:   []strain{{nameFlease, of(300_000), of(290_000), -0.03}, {nameEtcdSync, of(2_000), of(500), -0.75}},
		Writer: &load{BytesPerSecond: 2e8, SyncsPerSecond: 400, CPUs: 0.1},
	}
	for _, size := range batchSizes() {
		r.Batches = append(r.Batches, point{nameFlease, size, of(300_000)})
	}
	for _, size := range batchSizes() {
		r.Batches = append(r.Batches, point{nameZooKeeper, size, of(9_000)})
	}
	for _, size := range groupSizes() {
		r.Groups = append(r.Groups, point{nameFlease, size, of(900_000 / float64(size))})
	}
	r.Goals = r.judge()
	return r
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*report)
		missed string // part of the goal
	}{
		"all met":       {func(*report) {}, ""},
		"too slow":      {func(r *report) { r.Contest[0].Rate.Median, r.Contest[4].Rate.Median = 199_000, 5_000 }, "200,000 leases/s"},
		"not by 20":     {func(r *report) { r.Contest[4].Rate.Median = 16_000 }, "20 times the fastest lock service (ZooKeeper)"},
		"not by 20, 2":  {func(r *report) { r.Contest[3].Rate.Median = 16_000 }, "20 times the fastest lock service (etcd, lease per client)"},
		"not flat":      {func(r *report) { r.Batches[5].Rate.Median = 200_000 }, "size of batches"},
		"others' shape": {func(r *report) { r.Batches[7].Rate.Median = 1 }, ""},
		"disk":          {func(r *report) { r.Disk[0].Change = -0.11 }, "busy disk"},
	} {
		r := sample()
		c.change(r)
		var missed []string
		goals := r.judge()
		for _, v := range goals {
			if !v.Met {
				missed = append(missed, v.Want)
			}
		}
		if len(goals) != 4 || (c.missed == "") != (len(missed) == 0) || len(missed) > 1 || c.missed != "" && !strings.Contains(missed[0], c.missed) {
			t.Errorf("%s: missed %q of %d goals, want %q", name, missed, len(goals), c.missed)
		}
	}
	if got := new(report).judge(); len(got) != 0 {
		t.Errorf("an empty report is judged: %v", got)
	}
}

func TestReplacePart(t *testing.T) {
	const page = "a\n<!-- disk -->\nold\n<!-- end of disk -->\nb\n"
	got, err := replacePart(page, "disk", "new\n")
	if want := strings.Replace(page, "old", "new", 1); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for name, page := range map[string]string{
		"no mark": "a\n", "no end": "<!-- disk -->\n", "backwards": "<!-- end of disk -->\n<!-- disk -->\n", "twice": page + page,
	} {
		if got, err := replacePart(page, "disk", "new\n"); err == nil {
			t.Errorf("%s: %q, and no error", name, got)
		}
	}
}

// TestWritePage writes our page, with its marks, as it is in the repository.
func TestWritePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/flease.md")
	if err != nil {
		t.Fatal(err)
	}
	write := func() (string, map[string][]byte) {
		docs := t.TempDir()
		if err := os.WriteFile(filepath.Join(docs, "flease.md"), page, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := writePage(docs, sample()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(docs, "flease.md"))
		if err != nil {
			t.Fatal(err)
		}
		plots := make(map[string][]byte)
		for _, name := range []string{"figure-3.svg", "figure-4.svg", "figure-5.svg"} {
			if plots[name], err = os.ReadFile(filepath.Join(docs, "flease", name)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), "(flease/"+name+")") {
				t.Errorf("the page does not show %s", name)
			}
		}
		return string(text), plots
	}
	text, plots := write()
	for _, row := range []string{
		"| flease | 300,000 | 150,000 | 600,000 | 5 |  | x |", "| 1,000 | 300,000 | 9,000 |",
		"| flease | 300,000 | 290,000 | -3.0 % |", "From `go run . -x`, at a load of 0.2 before it.", "| 15 | 4,000 | 60,000 | 30,000 | 120,000 | 5 |",
	} {
		if !strings.Contains(text, row+"\n") {
			t.Errorf("the page lacks %q", row)
		}
	}
	again, same := write()
	if diff := cmp.Diff(text, again); diff != "" {
		t.Errorf("another page for the same report:\n%s", diff)
	}
	for name, image := range plots {
		if !bytes.Contains(image, []byte("</svg>")) || !bytes.Equal(image, same[name]) {
			t.Errorf("%s is no image, or another one for the same report", name)
		}
	}
}

func TestOptions(t *testing.T) {
	for line, parts := range map[string]string{
		"":                   "contest,batches,disk,groups",
		"-only disk,groups":  "disk,groups",
		"-turn 10ms -warm 0": "contest,batches,disk,groups",
		"-only nothing":      "",
		"-turn 1h":           "",
		"-warm -1":           "",
	} {
		var o options
		flags := flag.NewFlagSet("flease", flag.ContinueOnError)
		o.flags(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := o.complete(5, false)
		if got := strings.Join(o.parts, ","); (err == nil) != (parts != "") || err == nil && got != parts {
			t.Errorf("%q: parts %q, %v, want %q", line, got, err, parts)
		}
	}
	o := options{warm: 3, turn: time.Second}
	if err := o.complete(2, true); err != nil || !slices.Equal(o.parts, []string{partContest}) || o.turn >= time.Second || o.rounds != 2 {
		t.Errorf("quick: %+v, %v", o, err)
	}
}

// TestTell: the page of the benchmark has the contest, and compares with all.
func TestTell(t *testing.T) {
	to := &kit.Result{Question: "flease"}
	sample().tell(to)
	peers := make(map[string]float64)
	for _, h := range to.Headlines {
		peers[h.Peer] = h.Ratio
	}
	want := map[string]float64{nameFloor: 0.15, nameEtcd: 100, nameEtcdClient: 50, nameZooKeeper: 30, "the paper's, on 30 machines": 5.879}
	if diff := cmp.Diff(want, peers); diff != "" || len(to.Goals) != 4 || to.Missed() != 0 {
		t.Errorf("%d goals, %d missed; %s", len(to.Goals), to.Missed(), diff)
	}
}
