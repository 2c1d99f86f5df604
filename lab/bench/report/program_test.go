package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a benchmark without measurements.
func tiny() *Benchmark {
	return &Benchmark{
		Name: "tiny", Number: 3, Title: "How small?", About: "It *asks*.", Rounds: 7, Quick: 2, Seconds: 1, QuickSeconds: 1,
		Run: func(_ context.Context, r *Run) error {
			r.Step("%d rounds", r.Rounds)
			t := NewTable("", "who", "ns")
			t.Add("ours", fmt.Sprint(r.Rounds))
			r.Add("Sizes", "By rounds.", t)
			r.Less("size", 10, "ns", "peer", 123.44)
			r.More("rate", 10, "1/s", "other", 40)
			r.Want("at most 20 ns", 10, "ns", true)
			r.Lose("to other, because it is %s.", "larger")
			return nil
		},
	}
}

// named returns a benchmark with parts that does something.
func named(name string, number int, do func(context.Context, *Run) error) *Benchmark {
	return &Benchmark{Name: name, Number: number, Title: "It is " + name, Parts: []string{"a", "b", "c"}, QuickPart: "b", Long: []string{"long"}, Rounds: 4, Quick: 2, Run: do}
}

// runLine runs benchmarks with a command line.
func runLine(t *testing.T, line string, all ...*Benchmark) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = run(t.Context(), all, strings.Fields(line), &stdout, &stderr)
	return stdout.String(), stderr.String(), err
}

func TestBenchmarkPrints(t *testing.T) {
	out, errs, err := runLine(t, "", tiny())
	if err != nil || !strings.Contains(errs, "tiny: 7 rounds") {
		t.Fatalf("%v, %s", err, errs)
	}
	for _, text := range []string{"ours  7", "at most 20 ns  10 ns  yes", "tiny.size  10    ns    peer   123     12.3"} {
		if !strings.Contains(out, text) {
			t.Errorf("the output lacks %q:\n%s", text, out)
		}
	}
}

const tinyLines = `{"name":"tiny.size","value":10,"unit":"ns","peer":"peer","peerValue":123.4,"ratio":12.34}
{"name":"tiny.rate","value":10,"unit":"1/s","peer":"other","peerValue":40,"ratio":0.25}
`

// TestQuick: a table of all headlines, and the lines; also after failures.
func TestQuick(t *testing.T) {
	bad := named("bad", 1, func(context.Context, *Run) error { return errors.New("the server\nis gone") })
	out, errs, err := runLine(t, "-quick", bad, tiny())
	if err == nil || !strings.Contains(err.Error(), "bad: the server") || !strings.Contains(errs, "FAILED bad: the server") {
		t.Errorf("%v, %s", err, errs)
	}
	if !strings.HasPrefix(out, "Headlines\n") || !strings.HasSuffix(out, "\n"+tinyLines) {
		t.Errorf("got %s", out)
	}
}

func TestCommandLine(t *testing.T) {
	for line, says := range map[string]string{
		"-only tiny,x": `unknown name "x"`, "x": `unexpected argument "x"`, "-rounds -1": "want 1 to 1000",
		"-quick -docs x": "-docs excludes", "-page": "requires -docs",
	} {
		if _, _, err := runLine(t, line, tiny()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
	if _, help, err := runLine(t, "-h", tiny()); err != nil || !strings.Contains(help, "-only") {
		t.Errorf("%v, %s", err, help)
	}
}

// TestOnly: benchmarks and parts are selected, and the command repeats that.
func TestOnly(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "x abc, y abc",
		"-only y":           "y abc",
		"-only y/c,y/b":     "y bc",
		"-only y/a,x":       "x abc, y a",
		"-quick":            "x b, y b",
		"-quick -only y/a":  "y a",
		"-only x -rounds 9": "x abc",
		"-only y/long":      "y long", // runs only if it is named
	} {
		var got, commands []string
		play := func(_ context.Context, r *Run) error {
			var parts string
			for _, part := range []string{"a", "b", "c", "long"} {
				if r.Wants(part) {
					parts += part
				}
			}
			got, commands = append(got, r.Benchmark+" "+parts), append(commands, strings.TrimPrefix(r.Command, "cd lab/bench && go run . "))
			_, err := os.Stat(r.Dir)
			return err
		}
		all := []*Benchmark{named("x", 1, play), named("y", 2, play)}
		if _, _, err := runLine(t, line, all...); err != nil || strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
		for i, command := range commands {
			again := got[i]
			got = nil
			if _, _, err := runLine(t, command, all...); err != nil || len(got) != 1 || got[0] != again {
				t.Errorf("%q: %q runs %q, %v, want %q", line, command, got, err, again)
			}
			got = strings.Split(want, ", ")
		}
	}
}

// TestInterrupt: no benchmark starts after an interrupt.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	first := named("x", 1, func(ctx context.Context, _ *Run) error { cancel(over); return ctx.Err() })
	next := named("y", 2, func(context.Context, *Run) error { t.Error("it runs"); return nil })
	if err := run(ctx, []*Benchmark{first, next}, nil, io.Discard, io.Discard); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}

// TestPageKeepsResults: benchmarks that do not run, or fail, keep their last result.
func TestPageKeepsResults(t *testing.T) {
	docs := t.TempDir()
	first := Result{Benchmark: "first", Number: 1, Title: "Before, it", Command: "go run ./first", Date: "2020-02-02", Losses: []string{"much."}}
	first.Less("x", 2, "ns", "p", 1)
	first.Want("at most 1 ns", 2, "ns", false)
	if err := first.store(docs); err != nil {
		t.Fatal(err)
	}
	failing := named("first", 1, func(context.Context, *Run) error { return errors.New("broken") })
	if _, _, err := runLine(t, "-rounds 1 -docs "+docs, failing, tiny()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
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
		"## 3. How small?", "It *asks*.", "    cd lab/bench && go run . -only tiny -rounds 1\n", "### Sizes\n\nBy rounds.\n\n| who | ns |",
		"| at most 20 ns | 10 ns | yes |",
		"## What we lose, and why", "- [first](#1-before-it): much.", "- [first](#1-before-it), missed goal: at most 1 ns; it is 2 ns.", "- [tiny](#3-how-small): to other",
	} {
		at := strings.Index(string(text), want)
		if at <= last {
			t.Errorf("%q is at %d of the page, want it after %d", want, at, last)
		}
		last = max(last, at)
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
		if err := writePage(docs); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", text, err)
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
