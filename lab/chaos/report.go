package chaos

import (
	"context"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"

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
