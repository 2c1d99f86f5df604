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
	Builds      []string          `json:"builds"` // before and after upgrades
	Storms      int               `json:"storms"`
	Faults      int               `json:"faults"`
	ByKind      map[string]int    `json:"faultsByKind"`
	Missed      int               `json:"missed"`              // faults without a possible victim
	Revived     int               `json:"revived"`             // processes that ended by themselves, as expected, and were restarted
	RevivedBy   map[string]int    `json:"revivedBy,omitempty"` // the same by role and reason
	Created     int               `json:"created"`             // how often the namespace had to be created
	Recoveries  Recoveries        `json:"recoveries"`
	Checked     check.Counts      `json:"checked"`
	Packets     lan.Counts        `json:"packets"`
	Vitals      []leaks.Course    `json:"vitals,omitempty"`     // of a soak: resource usage
	Excused     int               `json:"excused,omitempty"`    // violations excused because of clocks beyond the drift bound
	Noticed     int               `json:"noticed,omitempty"`    // how often owners detected their slow clocks, and dropped their leases
	ShortLives  int               `json:"shortLives,omitempty"` // processes with too few samples
	Violations  []check.Violation `json:"violations"`
	Interrupted bool              `json:"interrupted,omitempty"`
	Unbounded   bool              `json:"unbounded,omitempty"` // the retransmission timeout of TCP was not bounded
	Replay      string            `json:"replay"`
	Kept        string            `json:"kept,omitempty"` // directory of logs and histories
}

// Recoveries are the times after storms until every key had an owner.
type Recoveries struct {
	Count       int     `json:"count"`
	BoundMillis float64 `json:"bound"` // B of I6
	SlackMillis float64 `json:"slack"`
	Median      float64 `json:"p50"`
	P99         float64 `json:"p99"`
	Max         float64 `json:"max"`
	WithinBound int     `json:"withinBound"` // without the slack
	Forgotten   int     `json:"forgotten"`   // after most managers without a store had lost their memory, with WiderMillis as bound
	WiderMillis float64 `json:"wider"`       // bound after that
	Late        []Late  `json:"late,omitempty"`
}

// A Late recovery took longer than B.
type Late struct {
	Storm       int     `json:"storm"`
	Millis      float64 `json:"took"`
	StoreMillis float64 `json:"store"` // until most members of the store had a leader
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
	at := func(share float64) float64 { // nearest rank
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
	all := []string{versionOf(ctx, cfg.Program)}
	if cfg.Other != "" {
		all = append(all, versionOf(ctx, cfg.Other))
	}
	return all
}

// versionOf is the output of a program's command "version".
func versionOf(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return program + ", of unknown version"
	}
	return strings.TrimSpace(string(out))
}

// bundle adds the report and a README to the directory of a run.
func (r *run) bundle() error {
	text, err := json.MarshalIndent(&r.report, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.cfg.Dir, "report.json"), text, 0o600),
		os.WriteFile(filepath.Join(r.cfg.Dir, "README"), []byte(r.readme()), 0o600))
}

// readme returns the description of the directory.
func (r *run) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is the result of a run of leasehold-lab chaos. To repeat it:\n\n    %s\n\n", r.report.Replay)
	b.WriteString("The same seed injects the same faults. But the scheduling of processes differs, so the run may\nnot reproduce the violation. ")
	b.WriteString("The builds were:\n\n")
	for _, build := range r.report.Builds {
		fmt.Fprintf(&b, "    %s\n", build)
	}
	b.WriteString("\nViolations, the first of each kind:\n\n")
	for _, v := range r.report.Violations {
		fmt.Fprintf(&b, "    %v\n", v)
	}
	if len(r.report.Violations) == 0 {
		b.WriteString("    nothing\n")
	}
	began := oracle.Now() - oracle.Time(time.Since(r.begin))
	fmt.Fprintf(&b, `
All times are nanoseconds on one clock, the monotonic clock of the chaos process. The run began at
%d, which was %s. Logs have the wall clock.

    report.json    the report, as printed by --json
    faults.jsonl   the faults: "at" and "for" count from the beginning of the storm; "time" is
                   the time of the injection and, with "healed", of its end; without "victims"
                   there was no possible victim
    NAME.log       the log of a process: m1 to m3 are managers, e1 to e3 stores, o1 and so on
                   servers (owners), c1 and so on callers
    oN.history     the leases of a server: "check" is before and after a successful Check of the key,
                   and "held" of the last one under the same lease, so that it held the key at least
                   from the second number of the first to the first number of the second
    cN.history     the observations of a caller: tables, losses, calls of registers and their replies
    NAME.history.older   the earlier part, if the history was long

    The data of managers and stores is not kept: it was in memory.
`, began, r.begin.UTC().Format(time.RFC3339Nano))
	return b.String()
}
