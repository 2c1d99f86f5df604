package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestMain makes the test binary a benchmark, according to its name.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	play := map[string]func(context.Context, *report.Run) error{
		"good": func(_ context.Context, r *report.Run) error {
			r.Less("cost", float64(r.Rounds), "ns", "peer", 8)
			return nil
		},
		"missing": func(_ context.Context, r *report.Run) error { r.Want("the moon", 0, "", false); return nil },
		"bad": func(_ context.Context, r *report.Run) error {
			r.Note("output of a server")
			return errors.New("the server\nis gone")
		},
		"crashing": func(context.Context, *report.Run) error { panic("at the disco") },
		"slow":     func(ctx context.Context, _ *report.Run) error { <-ctx.Done(); return context.Cause(ctx) },
	}[name]
	if play == nil {
		os.Exit(m.Run())
	}
	report.Main(report.Benchmark{Name: name, Number: len(name), Title: "It is " + name, About: "How " + name + "?", Rounds: 4, Quick: 2, Run: play})
}

// build links this program in place of the benchmarks.
func build(_ context.Context, bin string, all []program) map[string]error {
	broken := make(map[string]error)
	self, err := os.Executable()
	for _, q := range all {
		if q.name == "unbuildable" {
			broken[q.name] = errors.New("building it: no such import")
		} else if err == nil {
			err = os.Symlink(self, filepath.Join(bin, q.name))
		}
	}
	if err != nil {
		panic(err)
	}
	return broken
}

// newSession returns a session of programs of this test.
func newSession(t *testing.T, names ...string) *session {
	t.Helper()
	silent, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	s := &session{docs: t.TempDir(), bin: t.TempDir(), progress: report.NewProgress(silent), build: build}
	for _, name := range names {
		s.programs = append(s.programs, program{name: name, number: len(name), title: "It is " + name, seconds: 60, limit: 60, quick: 60})
	}
	return s
}

func page(t *testing.T, s *session) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.docs, "BENCHMARKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFailuresLeaveTheOthers: after failures the page has the results of the other benchmarks,
// and the errors.
func TestFailuresLeaveTheOthers(t *testing.T) {
	s := newSession(t, "unbuildable", "bad", "crashing", "slow", "good", "missing")
	s.programs[3].limit = 1
	err := s.runAll(t.Context())
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{
		"unbuildable: building it: no such import", "bad: the server", "crashing: panic: at the disco", "slow: time limit of 1s exceeded",
	} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error lacks %q: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "missing") {
		t.Errorf("a goal that is missed is an error: %v", err)
	}
	got := page(t, s)
	for _, text := range []string{
		"| [good](#4-it-is-good) | cost | 4 | ns | peer | 8 | 2 |", "## 4. It is good\n\nHow good?",
		"**Failed**: [bad](#3-it-is-bad), in its last run.",
		"## 3. It is bad\n\n**Failed** on " + time.Now().UTC().Format(time.DateOnly)[:4], ": the server is gone. There is no earlier result.\n",
		"## 4. It is slow\n\n**Failed** on ", "time limit of 1s exceeded. There",
		"## 8. It is crashing\n\n**Failed** on ", "panic: at the disco",
		"## 11. It is unbuildable\n\n**Failed** on ", "0 of 1 goals are met.",
	} {
		if !strings.Contains(got, text) {
			t.Errorf("the page lacks %q:\n%s", text, got)
		}
	}
	if rows := len(s.spent.Rows); rows != 7 {
		t.Errorf("%d rows of durations, want 7", rows)
	}
}

// TestFailureKeepsWhatWasFound: a failure keeps the earlier result, until the next result.
func TestFailureKeepsWhatWasFound(t *testing.T) {
	s := newSession(t, "good")
	if err := s.runAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := report.StoreFailure(s.docs, s.programs[0].result(), errors.New("no luck")); err != nil {
		t.Fatal(err)
	}
	got := page(t, s)
	for _, text := range []string{"no luck. This is the earlier result.\n\nHow good?", "| cost | 4 | ns |", "go run ./good"} {
		if !strings.Contains(got, text) {
			t.Errorf("the page lacks %q:\n%s", text, got)
		}
	}
	s.rounds, s.bin = 1, t.TempDir()
	if err := s.runAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := page(t, s); strings.Contains(got, "Failed") || !strings.Contains(got, "| cost | 1 | ns |") {
		t.Errorf("after another run the page is\n%s", got)
	}
}

// TestLimitOfAll: benchmarks after the time limit are reported as failures.
func TestLimitOfAll(t *testing.T) {
	s := newSession(t, "slow", "good")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, fmt.Errorf("%w of so much", errLimit))
	defer cancel()
	err := s.runAll(ctx)
	if !errors.Is(err, errLimit) || !errors.Is(err, errNoTime) {
		t.Errorf("got %v", err)
	}
	if got := page(t, s); !strings.Contains(got, "no time left. There is no earlier result") {
		t.Errorf("the page is\n%s", got)
	}
}

// TestInterrupt: an interrupt stores nothing.
func TestInterrupt(t *testing.T) {
	s := newSession(t, "slow", "good")
	ctx, cancel := context.WithCancel(t.Context())
	s.build = func(ctx context.Context, bin string, all []program) map[string]error {
		defer cancel()
		return build(ctx, bin, all)
	}
	if err := s.runAll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if files, err := os.ReadDir(s.docs); err != nil || len(files) > 0 {
		t.Errorf("%v are stored, %v", files, err)
	}
}

// TestQuick: headlines are collected, also after failures, and nothing is stored.
func TestQuick(t *testing.T) {
	s := newSession(t, "bad", "good")
	s.quick = true
	if err := s.runAll(t.Context()); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("got %v", err)
	}
	var out strings.Builder
	if err := s.printHeadlines(&out); err != nil {
		t.Fatal(err)
	}
	const line = `{"name":"good.cost","value":2,"unit":"ns","peer":"peer","peerValue":8,"ratio":4}` + "\n"
	if !strings.HasSuffix(out.String(), line) {
		t.Errorf("got %s, want it to end with %s", out.String(), line)
	}
	if files, err := os.ReadDir(s.docs); err != nil || len(files) > 0 {
		t.Errorf("%v are stored, %v", files, err)
	}
}

// TestBudget: all benchmarks fit into the limit, also if one reaches its own limit, and so do
// those of -quick, including building.
func TestBudget(t *testing.T) {
	takes, over, quick := buildLimit, time.Duration(0), time.Duration(0)
	for _, q := range programs() {
		foreseen := time.Duration(q.seconds) * time.Second
		takes, over = takes+foreseen, max(over, time.Duration(q.limit)*time.Second-foreseen)
		quick += time.Duration(q.quick) * time.Second
		if q.seconds >= q.limit {
			t.Errorf("%s takes %d s, its limit is %d", q.name, q.seconds, q.limit)
		}
	}
	if most := takes + over; most > wholeLimit {
		t.Errorf("all may take %v, want at most %v", most, wholeLimit)
	}
	if most := 3*time.Minute - 2*buildSeconds*time.Second; quick > most {
		t.Errorf("-quick takes %v, want at most %v", quick, most)
	}
}

// TestProgramsAreListed: every benchmark is listed, with its number and title.
func TestProgramsAreListed(t *testing.T) {
	files, err := filepath.Glob("../*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	about := regexp.MustCompile(`Name: "([a-z]+)", Number: ([0-9]+), Title: "([^"]+)"`)
	var want []report.Result
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if match := about.FindStringSubmatch(string(text)); match != nil {
			number, _ := strconv.Atoi(match[2])
			want = append(want, report.Result{Benchmark: match[1], Number: number, Title: match[3]})
		}
	}
	slices.SortFunc(want, func(a, b report.Result) int { return a.Number - b.Number })
	var got []report.Result
	for _, q := range programs() {
		got = append(got, q.result())
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b report.Result) bool {
		return a.Benchmark == b.Benchmark && a.Number == b.Number && a.Title == b.Title
	})); diff != "" {
		t.Errorf("(-questions +list):\n%s", diff)
	}
}

func names(all []program) (names []string) {
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-only", "routing,guard"}, os.Stderr)
	if err != nil || !slices.Equal(names(o.programs), []string{"routing", "guard"}) {
		t.Errorf("%v, %v", names(o.programs), err)
	}
	if _, err := parse([]string{"-only", "x"}, os.Stderr); err == nil || !strings.Contains(err.Error(), `unknown name "x"`) {
		t.Errorf("got %v", err)
	}
}
