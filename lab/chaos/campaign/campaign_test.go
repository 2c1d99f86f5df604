package campaign

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

func TestText(t *testing.T) {
	r := chaos.Report{
		Store: "flease", Seed: 7, Seconds: 12, Storms: 1, Faults: 3, ByKind: map[string]int{"loss": 2, "delay": 1}, Revived: 1, RevivedBy: map[string]int{"manager: no quorum": 1}, Created: 1, Unbounded: true,
		Checked:    check.Counts{Writes: 2, Refused: 1},
		Violations: []check.Violation{{Invariant: "I5", Broken: "a table went back", Text: "from 2 to 1", Times: 4}},
		Kept:       "/somewhere",
	}
	r.ShortLives, r.Vitals = 2, []leaks.Course{
		{Process: "m1", What: "bytes of heap", Samples: 30, Early: 3 << 20, Late: 4 << 20, Allowed: 8 << 20},
		{Process: "o1", What: "goroutines", Samples: 20, Early: 50, Late: 100, Allowed: 78},
	}
	r.Recoveries = chaos.Recoveries{Count: 14, WithinBound: 2, BoundMillis: 5800, Late: slices.Repeat([]chaos.Late{{Storm: 7, Millis: 6297, StoreMillis: 1500}}, 12)}
	text := ansi.Strip(reportText(&r, 0))
	for _, want := range []string{
		"2 of 14 within B, which is 5800 ms (I6)\n            late: 6297 ms after storm 7, where the store had a leader after 1500 ms\n", "\n            2 more\n",
		"store flease, seed 7, 12.0 s, 1 storm\n", "3 faults: delay 1, loss 2\n", "I5: a table went back (4 times): from 2 to 1\n",
		"2 other processes had too few samples\n            m1     heap ", " 3.0 MiB      4.0 MiB (8.0) of 30 samples\n            o1     goroutines ", " 50.0    100.0 (78.0) of 20 samples\n",
		"kept        /somewhere; README describes it\n", "2 writes accepted, 1 refused (I9)\n", "restarts    manager: no quorum 1\n", "hosts       the retransmission timeout", "processes that ended by themselves and were restarted: 1; namespaces lost with all managers and created again: 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	narrow := ansi.Strip(reportText(&r, 60))
	if !slices.Equal(strings.Fields(narrow), strings.Fields(text)) {
		t.Errorf("different words in a narrow terminal:\n%s", narrow)
	}
	for line := range strings.Lines(narrow) {
		if ansi.StringWidth(line) > 61 || line != "Chaos\n" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line[10:], "  ") {
			t.Errorf("line too long for the terminal: %q", line)
		}
	}
	if text := ansi.Strip(reportText(&chaos.Report{ShortLives: 3}, 0)); !strings.Contains(text, "vitals      not judged: none of 3 processes ") {
		t.Errorf("the text does not report that no process was judged:\n%s", text)
	}
	text = ansi.Strip(reportText(&chaos.Report{Interrupted: true}, 0))
	if !strings.Contains(text, "violations  none\n") || strings.Contains(text, "fence") || strings.Contains(text, "hosts") || !strings.Contains(text, "0 storms, interrupted\n") ||
		!strings.Contains(text, "no completed storm") {
		t.Errorf("got\n%s", text)
	}
}

// TestRecord: reports are appended, and the first one replaces the previous content.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	has := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("content %q (%v), want %q", got, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("of the run before"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := newRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	has("of the run before")
	for _, report := range []string{"one\n", "two\n"} {
		if err := r.add(report); err != nil {
			t.Fatal(err)
		}
	}
	has("one\ntwo\n")
	if _, err := newRecord(filepath.Join(path, "below")); err == nil {
		t.Error("no error for a path below a file")
	}
	none, err := newRecord("")
	if err != nil || none.add("lost") != nil {
		t.Errorf("error %v without a file", err)
	}
	none.close()
}

func TestProgress(t *testing.T) {
	for _, test := range []struct {
		at    chaos.Snapshot
		share float64
		text  string
	}{
		{chaos.Snapshot{Elapsed: 30 * time.Second, Of: time.Minute, Faults: 1, Store: "etcd", Doing: "breaking"}, 0.5, "etcd: 30s of ~1m0s, 0 storms, 1 fault, breaking"},
		{chaos.Snapshot{Elapsed: time.Second, Faults: 30, Enough: 40, Storms: 2, Broken: true, Store: "flease", Doing: "recovering"}, 0.75, "flease: 1s, 2 storms, 30 of 40 faults, recovering, VIOLATION"},
		{chaos.Snapshot{Elapsed: time.Hour, Of: time.Minute, Store: "external", Doing: "judging"}, 1, "external: 1h0m0s, 0 storms, 0 faults, judging"},
	} {
		if got := share(test.at); got != test.share {
			t.Errorf("%+v: share %v, want %v", test.at, got, test.share)
		}
		if got := ansi.Strip(numbers(test.at)); got != test.text {
			t.Errorf("got %q, want %q", got, test.text)
		}
	}
}
