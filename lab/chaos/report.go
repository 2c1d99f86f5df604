package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

// A Report is the result of a run. Fields may be added; none is renamed or removed.
type Report struct {
	Store       cluster.Shape     `json:"store"`
	Seed        uint64            `json:"seed"`
	Seconds     float64           `json:"seconds"`
	Builds      []string          `json:"builds"` // what processes were upgraded from and to
	Storms      int               `json:"storms"`
	Faults      int               `json:"faults"`
	ByKind      map[string]int    `json:"faultsByKind"`
	Missed      int               `json:"missed"`  // faults for which there was nobody left
	Revived     int               `json:"revived"` // processes that ended by themselves, as they should, and were started again
	Created     int               `json:"created"` // times that the namespace had to be created
	Recoveries  Recoveries        `json:"recoveries"`
	Checked     check.Counts      `json:"checked"`
	Packets     lan.Counts        `json:"packets"`
	Vitals      []leaks.Course    `json:"vitals,omitempty"`     // of a soak: what processes took to live
	Excused     int               `json:"excused,omitempty"`    // of what clocks beyond the drift bound are to blame for
	Noticed     int               `json:"noticed,omitempty"`    // times that owners found their clocks too slow, and dropped their leases
	ShortLives  int               `json:"shortLives,omitempty"` // and how many processes lived too short to say
	Violations  []check.Violation `json:"violations"`
	Interrupted bool              `json:"interrupted,omitempty"`
	Unbounded   bool              `json:"unbounded,omitempty"` // TCP waited for as long as it likes before it sent again
	Replay      string            `json:"replay"`
	Kept        string            `json:"kept,omitempty"` // where logs and histories are
}

// Recoveries is how long it took after storms until every key had an owner.
type Recoveries struct {
	Count       int     `json:"count"`
	BoundMillis float64 `json:"bound"` // B of I6
	SlackMillis float64 `json:"slack"`
	Median      float64 `json:"p50"`
	P99         float64 `json:"p99"`
	Max         float64 `json:"max"`
	WithinBound int     `json:"withinBound"` // and not only with the slack
	Forgotten   int     `json:"forgotten"`   // after most managers without a store had lost their memory, with another bound
	WiderMillis float64 `json:"wider"`       // which is this
	Late        []Late  `json:"late,omitempty"`
}

// A Late recovery took longer than B.
type Late struct {
	Storm       int     `json:"storm"`
	Millis      float64 `json:"took"`
	StoreMillis float64 `json:"store"` // how long it took until most members of the store had a leader
}

type recovery struct {
	storm              int
	took, bound, store time.Duration
}

func recoveries(all []recovery, cfg *Config) Recoveries {
	r := Recoveries{
		Count: len(all), BoundMillis: millis(cfg.bound(false)), WiderMillis: millis(cfg.bound(true)), SlackMillis: millis(cfg.Slack),
	}
	if len(all) == 0 {
		return r
	}
	var sorted []time.Duration
	for _, d := range all {
		sorted = append(sorted, d.took)
		if d.took <= d.bound {
			r.WithinBound++
		} else {
			r.Late = append(r.Late, Late{Storm: d.storm, Millis: millis(d.took), StoreMillis: millis(d.store)})
		}
		if d.bound > cfg.bound(false) {
			r.Forgotten++
		}
	}
	slices.Sort(sorted)
	at := func(share float64) float64 { // so many took no longer
		return millis(sorted[max(1, int(math.Ceil(share*float64(len(sorted)))))-1])
	}
	r.Median, r.P99, r.Max = at(0.5), at(0.99), at(1)
	return r
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// builds describes the builds of the command that a run uses.
func builds(ctx context.Context, cfg *Config) []string {
	if cfg.Builds != nil {
		return cfg.Builds
	}
	said := []string{versionOf(ctx, cfg.Program)}
	if cfg.Other != "" {
		said = append(said, versionOf(ctx, cfg.Other))
	}
	return said
}

// versionOf is the output of a program's command "version".
func versionOf(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return program + ", which does not say what it is"
	}
	return strings.TrimSpace(string(out))
}

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
