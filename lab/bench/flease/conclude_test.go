package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// sample returns findings that meet all goals.
func sample() *findings {
	of := func(rate float64) locks.Rate {
		return locks.Rate{Summary: report.Summary{Median: rate, Low: rate / 2, High: rate * 2, Turns: 3}, Effort: 5}
	}
	f := &findings{
		Versions: []string{"etcd 1"},
		Contest: []point{
			{nameFlease, usualBatch, of(300_000)},
			{nameFloor, usualBatch, of(2_000_000)},
			{nameEtcd, usualBatch, of(3_000)},
			{nameEtcdClient, usualBatch, of(6_000)},
			{nameZooKeeper, usualBatch, of(10_000)},
		},
		Disk:    []strain{{nameFlease, of(300_000), of(290_000), -0.03}, {nameEtcdSync, of(2_000), of(500), -0.75}},
		Written: Written{Bytes: 2e8, Syncs: 400, Took: time.Second, CPU: time.Second / 10},
	}
	for _, name := range []string{nameFlease, nameZooKeeper} {
		for _, size := range batchSizes() {
			f.Batches = append(f.Batches, point{name, size, of(map[string]float64{nameFlease: 300_000, nameZooKeeper: 9_000}[name])})
		}
	}
	for _, size := range groupSizes() {
		f.Groups = append(f.Groups, point{nameFlease, size, of(900_000 / float64(size))})
	}
	return f
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*findings)
		missed string // part of the goal
	}{
		"all met":       {func(*findings) {}, ""},
		"too slow":      {func(f *findings) { f.Contest[0].Rate.Median, f.Contest[4].Rate.Median = 199_000, 5_000 }, "200,000 leases/s"},
		"not by 20":     {func(f *findings) { f.Contest[4].Rate.Median = 16_000 }, "20 times the fastest lock service (ZooKeeper)"},
		"not by 20, 2":  {func(f *findings) { f.Contest[3].Rate.Median = 16_000 }, "20 times the fastest lock service (etcd, lease per client)"},
		"not flat":      {func(f *findings) { f.Batches[5].Rate.Median = 200_000 }, "size of batches"},
		"others' shape": {func(f *findings) { f.Batches[7].Rate.Median = 1 }, ""},
		"disk":          {func(f *findings) { f.Disk[0].Change = -0.11 }, "busy disk"},
	} {
		f, r := sample(), &report.Result{}
		c.change(f)
		f.judge(r)
		var missed []string
		for _, g := range r.Goals {
			if !g.Met {
				missed = append(missed, g.Want)
			}
		}
		if len(r.Goals) != 4 || (c.missed == "") != (len(missed) == 0) || len(missed) > 1 || c.missed != "" && !strings.Contains(missed[0], c.missed) {
			t.Errorf("%s: missed %q of %d goals, want %q", name, missed, len(r.Goals), c.missed)
		}
	}
	r := &report.Result{}
	if new(findings).judge(r); len(r.Goals) != 0 {
		t.Errorf("goals without findings: %v", r.Goals)
	}
}

func TestPairedChange(t *testing.T) {
	rates := func(all ...int) (turns []locks.Turn) {
		for _, r := range all {
			turns = append(turns, locks.Turn{Leases: r, Took: time.Second})
		}
		return turns
	}
	for name, c := range map[string]struct {
		before, after []locks.Turn
		want          float64
	}{
		"none":          {nil, nil, 0},
		"less":          {rates(100, 100, 100), rates(90, 80, 10), -0.2},
		"a slow minute": {rates(100, 10, 100), rates(95, 9, 96), -0.05},
		"from nothing":  {rates(0), rates(5), 0},
	} {
		if got := pairedChange(c.before, c.after); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for line, valid := range map[string]bool{"": true, "-turn 10ms -warm 0": true, "-turn 1h": false, "-warm -1": false} {
		var o options
		flags := flag.NewFlagSet("flease", flag.ContinueOnError)
		o.flags(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if err := o.complete(false); (err == nil) != valid {
			t.Errorf("%q: %v", line, err)
		}
	}
	o := options{warm: 3, turn: time.Second}
	if err := o.complete(true); err != nil || o.warm != 1 || o.turn >= time.Second {
		t.Errorf("quick: %+v, %v", o, err)
	}
}

// TestConclude: the result has all tables and plots, and headlines for all contestants.
func TestConclude(t *testing.T) {
	r := &report.Run{Result: &report.Result{Benchmark: "flease"}}
	sample().conclude(r)
	peers := make(map[string]float64)
	for _, h := range r.Headlines {
		peers[h.Peer] = h.Ratio
	}
	want := map[string]float64{nameFloor: 0.15, nameEtcd: 100, nameEtcdClient: 50, nameZooKeeper: 30, "the paper's, on 30 machines": 5.879}
	if diff := cmp.Diff(want, peers); diff != "" || len(r.Goals) != 4 || r.Missed() != 0 {
		t.Errorf("%d goals, %d missed; %s", len(r.Goals), r.Missed(), diff)
	}
	docs := t.TempDir()
	if err := r.Store(docs); err != nil {
		t.Fatal(err)
	}
	if err := report.WritePage(docs); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(docs, "BENCHMARKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| flease | 300,000 | 150,000 | 600,000 | 5 |  | a lease agreed upon by 2 of 3 processes, AcquireAll |", "| 1,000 | 300,000 | 9,000 |",
		"| flease | 300,000 | 290,000 | -3.0 % |", "| 15 | 4,000 | 60,000 | 30,000 | 120,000 | 5 |",
	} {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("the page lacks %q", row)
		}
	}
	for _, name := range []string{"figure-3", "figure-4", "figure-5"} {
		image, err := os.ReadFile(filepath.Join(docs, "benchmarks", "flease-"+name+".svg"))
		if err != nil || !bytes.Contains(image, []byte("</svg>")) {
			t.Errorf("%s is not an image: %v", name, err)
		}
	}
}
