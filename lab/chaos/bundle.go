package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// bundle adds to what is kept of a run what came of it, and what is where.
func (r *run) bundle() error {
	text, err := json.MarshalIndent(&r.report, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.cfg.Dir, "report.json"), text, 0o600),
		os.WriteFile(filepath.Join(r.cfg.Dir, "README"), []byte(r.readme()), 0o600))
}

// readme is for whoever opens the directory and was not there.
func (r *run) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is what a run of leasehold-lab chaos has left. To do it again:\n\n    %s\n\n", r.report.Replay)
	b.WriteString("The same seed strikes in the same way; but processes are scheduled as they are, so that it may\nnot find the same again. ")
	b.WriteString("The builds were:\n\n")
	for _, build := range r.report.Builds {
		fmt.Fprintf(&b, "    %s\n", build)
	}
	b.WriteString("\nWhat was violated, the first time each:\n\n")
	for _, v := range r.report.Violations {
		fmt.Fprintf(&b, "    %v\n", v)
	}
	if len(r.report.Violations) == 0 {
		b.WriteString("    nothing\n")
	}
	began := oracle.Now() - oracle.Time(time.Since(r.begin))
	fmt.Fprintf(&b, `
All times are nanoseconds on one clock, the monotonic one of the chaos process. The run began at
%d, when it was %s. Logs have the wall clock.

    report.json    what came of it, as --json prints it
    faults.jsonl   what was done to whom: "at" and "for" count from the beginning of the storm, "time" is
                   when it was done, and again, with "healed", when it was undone; without victims
                   there was nobody to whom it could be done
    NAME.log       what a process said: m1 to m3 are managers, e1 to e3 stores, o1 and so on
                   servers (owners), c1 and so on callers
    oN.history     what a server believed: "check" is before and after a Check of the key that succeeded,
                   and "held" of the last one under the same lease, so that it held the key at least
                   from the second number of the one to the first number of the other
    cN.history     what a caller saw: its tables, losses it was told of, calls of registers and their answers
    NAME.history.older   what came before, if there was much

What managers and stores had on their disks is gone: these were in memory.
`, began, r.begin.UTC().Format(time.RFC3339Nano))
	return b.String()
}
