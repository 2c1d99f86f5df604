package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tiny is a benchmark without measurements.
func tiny() Benchmark {
	return Benchmark{
		Name: "tiny", Number: 3, Title: "How small?", About: "It *asks*.", Rounds: 7, Quick: 2,
		Run: func(_ context.Context, r *Run) error {
			r.Expect(r.Rounds)
			for i := range r.Rounds {
				r.Step("round %d", i+1)
			}
			t := NewTable("", "who", "ns")
			t.Add("ours", fmt.Sprint(r.Rounds))
			r.Add(Section{Title: "Sizes", Text: "By rounds.", Table: t})
			r.AddPlot("sizes", "sizes by rounds", func(w io.Writer) error { _, err := io.WriteString(w, "<svg/>"); return err })
			r.Less("size", 10, "ns", "peer", 123.44)
			r.More("rate", 10, "1/s", "other", 40)
			r.Want("at most 20 ns", 10, "ns", true)
			r.Lose("to other, because it is %s.", "larger")
			r.Skip("absent", errors.New("not installed"))
			return nil
		},
	}
}

func TestBenchmarkPrints(t *testing.T) {
	q := tiny()
	var out, errs bytes.Buffer
	if code := q.main(t.Context(), nil, &out, &errs); code != exitMet {
		t.Fatalf("%d: %s", code, errs.String())
	}
	for _, text := range []string{"ours  7", "at most 20 ns  10 ns  yes", "tiny.size  10    ns    peer   123     12.3", "SKIPPED absent: not installed"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output lacks %q:\n%s", text, out.String())
		}
	}
}

func TestBenchmarkPrintsLines(t *testing.T) {
	q := tiny()
	var out, errs bytes.Buffer
	if code := q.main(t.Context(), []string{"-json", "-quick", "-lines"}, &out, &errs); code != exitMet {
		t.Fatalf("%d: %s", code, errs.String())
	}
	const want = `{"name":"tiny.size","value":10,"unit":"ns","peer":"peer","peerValue":123.4,"ratio":12.34}
{"name":"tiny.rate","value":10,"unit":"1/s","peer":"other","peerValue":40,"ratio":0.25}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("progress 0.5000 round 1\nprogress 1.0000 round 2\nSKIPPED absent: not installed\n", errs.String()); diff != "" {
		t.Error(diff)
	}
}

func TestBenchmarkExitCodes(t *testing.T) {
	missing := tiny()
	run := missing.Run
	missing.Run = func(ctx context.Context, r *Run) error {
		r.Want("the moon", 0, "", false)
		return run(ctx, r)
	}
	failing := tiny()
	failing.Run = func(context.Context, *Run) error { return errors.New("broken") }
	for name, c := range map[string]struct {
		benchmark Benchmark
		args      []string
		code      int
		says      string
	}{
		"help":           {tiny(), []string{"-h"}, exitMet, "usage: cd lab/bench && go run ./tiny"},
		"argument":       {tiny(), []string{"x"}, exitUsage, `unexpected argument "x"`},
		"rounds":         {tiny(), []string{"-rounds", "-1"}, exitUsage, "want 1 to 1000"},
		"quick and docs": {tiny(), []string{"-quick", "-docs", "x"}, exitUsage, "exclude each other"},
		"missed":         {missing, nil, ExitMissed, ""},
		"failed":         {failing, nil, exitFailed, "tiny: broken"},
	} {
		var errs bytes.Buffer
		code := c.benchmark.main(t.Context(), c.args, io.Discard, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: %d %q, want %d and %q", name, code, errs.String(), c.code, c.says)
		}
	}
}

func TestCommand(t *testing.T) {
	q := tiny()
	if got := q.command([]string{"-docs", "../../docs", "-rounds", "3", "--json", "-lines", "-x=y"}); got != "cd lab/bench && go run ./tiny -rounds 3 -x=y" {
		t.Errorf("got %q", got)
	}
	q.Module = true
	if got := q.command(nil); got != "cd lab/bench/tiny && GOWORK=off go run ." {
		t.Errorf("got %q", got)
	}
}

// TestPageKeepsResults: benchmarks that do not run keep their last result.
func TestPageKeepsResults(t *testing.T) {
	docs := t.TempDir()
	first := Result{Benchmark: "first", Number: 1, Title: "Before, it", Command: "go run ./first", Date: "2020-02-02", Losses: []string{"much."}}
	first.Less("x", 2, "ns", "p", 1)
	first.Want("at most 1 ns", 2, "ns", false)
	if err := first.Store(docs); err != nil {
		t.Fatal(err)
	}
	q := tiny()
	var errs bytes.Buffer
	if code := q.main(t.Context(), []string{"-docs", docs, "-rounds=1"}, io.Discard, &errs); code != exitMet {
		t.Fatalf("%d: %s", code, errs.String())
	}
	text, err := os.ReadFile(filepath.Join(docs, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{
		"| [first](#1-before-it) | x | 2 | ns | p | 1 | 0.5 |",
		"| [tiny](#3-how-small) | size | 10 | ns | peer | 123 | 12.3 |",
		"1 of 2 goals are met.",
		"## 1. Before, it", "    go run ./first\n", "Measured on 2020-02-02",
		"## 3. How small?", "It *asks*.", "    cd lab/bench && go run ./tiny -rounds=1\n", "### Sizes\n\nBy rounds.\n\n| who | ns |",
		"![sizes by rounds](benchmarks/tiny-sizes.svg)", "| at most 20 ns | 10 ns | yes |", "**Skipped** absent: not installed.",
		"## What we lose, and why", "- [first](#1-before-it): much.", "- [first](#1-before-it), missed goal: at most 1 ns; it is 2 ns.", "- [tiny](#3-how-small): to other",
	} {
		at := strings.Index(string(text), want)
		if at <= last {
			t.Errorf("%q is at %d of the page, want it after %d", want, at, last)
		}
		last = max(last, at)
	}
	if plot, err := os.ReadFile(filepath.Join(docs, "benchmarks", "tiny-sizes.svg")); err != nil || string(plot) != "<svg/>" {
		t.Errorf("the plot is %q, %v", plot, err)
	}
}

func TestLoadResultsReportsErrors(t *testing.T) {
	for _, text := range []string{"{", "{}"} {
		docs := t.TempDir()
		dir := filepath.Join(docs, resultsDir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := WritePage(docs); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFlags(t *testing.T) {
	q := tiny()
	var mine string
	q.Flags = func(f *flag.FlagSet) { f.StringVar(&mine, "mine", "", "") }
	if code := q.main(t.Context(), []string{"-mine", "a"}, io.Discard, io.Discard); code != exitMet || mine != "a" {
		t.Errorf("%d, %q", code, mine)
	}
}

func TestParts(t *testing.T) {
	for line, want := range map[string]string{
		"": "a,b,c", "-only c,b": "b,c", "-quick": "b", "-quick -only a": "a", "-only a,x": "",
	} {
		q := tiny()
		q.Parts, q.QuickPart = []string{"a", "b", "c"}, "b"
		var got string
		q.Run = func(_ context.Context, r *Run) error {
			got = strings.Join(r.Parts, ",")
			if r.Only != strings.Contains(line, "-only") || r.Wants("a") != strings.Contains(want, "a") {
				t.Errorf("%q: %v, %v", line, r.Only, r.Parts)
			}
			_, err := os.Stat(r.Dir)
			return err
		}
		code := q.main(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		if got != want || (code == exitMet) != (want != "") {
			t.Errorf("%q: %d, parts %q, want %q", line, code, got, want)
		}
	}
}

func TestHeadlineIsAlwaysJSON(t *testing.T) {
	var r Result
	r.Less("x", 0, "ns", "p", 0)
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
