package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// TestHistoriesUseOneClock: the records of an owner whose clock is ahead are stored with times on the clock
// of faults and callers.
func TestHistoriesUseOneClock(t *testing.T) {
	r := &run{cfg: Config{Config: cluster.Config{Dir: t.TempDir()}}, book: check.New(nil, time.Second, 0)}
	var written bytes.Buffer
	record := oracle.Record{
		About: oracle.Belief, Key: 0xab, Generation: 7, Session: leasehold.Session{1, 2, 3, 4, 5},
		Check: oracle.Span{Before: 1010, After: 1020}, Held: oracle.Span{Before: 1030, After: 1040},
	}
	once := record
	once.Held = oracle.Span{}
	if err := oracle.WriteRecords(&written, record, once); err != nil {
		t.Fatal(err)
	}
	if err := r.owned("o1", 1000, &written); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.cfg.Dir, "o1.history"))
	const want = `{"key":"00000000000000ab","generation":7,"session":"01020304","check":[10,20],"held":[30,40]}
{"key":"00000000000000ab","generation":7,"session":"01020304","check":[10,20]}
`
	if err != nil || string(text) != want {
		t.Errorf("%v, got\n%s", err, text)
	}
}

// TestReadme: the file has the command that repeats the run, the violations, and the start time.
func TestReadme(t *testing.T) {
	r := &run{begin: time.Now(), report: Report{
		Replay: "leasehold-lab chaos --seed 7", Builds: []string{"this build", "that build"},
		Violations: []check.Violation{{Invariant: "I5", Broken: "a table went back", Text: "from 2 to 1", Times: 4}},
	}}
	text := r.readme()
	for _, want := range []string{"    leasehold-lab chaos --seed 7\n", "    that build\n", "I5: a table went back", r.begin.UTC().Format(time.RFC3339Nano), "faults.jsonl"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
