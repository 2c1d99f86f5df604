package policycmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A tryDocument has the results of all policies, in the order of the flag.
type tryDocument []runDocument

// A tryJSON is the output of "policy try --json": the first run, and with several policies also all of them
// in runs.
type tryJSON struct {
	runDocument
	Runs []runDocument `json:"runs,omitempty"`
}

// A runDocument is the result of one policy. Loads are relative to the mean, per weight, and shares are from
// 0 to 1.
type runDocument struct {
	Policy   string  `json:"policy"`
	Workload string  `json:"workload"`
	Owners   int     `json:"owners"` // at first
	Seed     string  `json:"seed"`
	Periods  int     `json:"periods"`
	Period   float64 `json:"periodSeconds"`
	Churn    float64 `json:"churn"`
	Target   float64 `json:"target"`

	MaxOverMean        float64 `json:"maxOverMean"` // this and the following at the end of the run
	MaxOverUnavoidable float64 `json:"maxOverUnavoidable"`
	Floor              float64 `json:"floor"`
	HottestKeyOverMean float64 `json:"hottestKeyOverMean"`
	OverTarget         int     `json:"ownersOverTarget"`
	Unowned            float64 `json:"unownedShare"`
	Ranges             int     `json:"ranges"`

	StartMaxOverMean float64 `json:"startMaxOverMean"`
	StartOverTarget  int     `json:"startOwnersOverTarget"`
	StartRanges      int     `json:"startRanges"`

	PeriodsToTarget  int     `json:"periodsToTarget"` // -1 if it was not reached for good
	KeysMoved        float64 `json:"keysMovedShare"`
	KeysForced       float64 `json:"keysForcedShare"` // the part of it whose owners had left
	Moves            int     `json:"moves"`
	MovesAfterStable int     `json:"movesAfterStable"` // in the last 10 minutes
	Elapsed          float64 `json:"elapsedSeconds"`

	Series []sampleDocument `json:"series,omitempty"` // with --series
}

type sampleDocument struct {
	Period      int     `json:"period"`
	Owners      int     `json:"owners"`
	Load        float64 `json:"load"` // of all keys, relative to the first period
	MaxOverMean float64 `json:"maxOverMean"`
	OverTarget  int     `json:"ownersOverTarget"`
	Moves       int     `json:"moves"`
	Moved       float64 `json:"keysMovedShare"`
	Ranges      int     `json:"ranges"`
}

func (o *tryOptions) document(r *policylab.Result, elapsed time.Duration) runDocument {
	first, last := r.First(), r.Last()
	moved, forced := r.KeysMoved()
	d := runDocument{
		Policy: r.Policy, Workload: o.workload.name, Owners: o.config.Owners, Seed: cli.Decimal(o.config.Seed),
		Periods: len(r.Samples), Period: r.Period.Seconds(), Churn: o.config.Churn, Target: r.Target,
		MaxOverMean: last.MaxOverMean, MaxOverUnavoidable: last.MaxOverUnavoidable, Floor: last.Floor,
		HottestKeyOverMean: last.HottestOverMean, OverTarget: last.OverTarget, Unowned: last.Unowned, Ranges: last.Ranges,
		StartMaxOverMean: first.MaxOverMean, StartOverTarget: first.OverTarget, StartRanges: first.Ranges,
		PeriodsToTarget: r.PeriodsToTarget(), KeysMoved: moved, KeysForced: forced,
		MovesAfterStable: r.MovesAfterStable(), Elapsed: elapsed.Seconds(),
	}
	for _, s := range r.Samples {
		d.Moves += s.Moves
		d.Series = append(d.Series, sampleDocument{
			s.Period, s.Owners, s.Load, s.MaxOverMean, s.OverTarget, s.Moves, s.Moved, s.Ranges,
		})
	}
	return d
}

func (d tryDocument) json(series bool) string {
	runs := slices.Clone(d)
	if !series {
		for i := range runs {
			runs[i].Series = nil
		}
	}
	out := tryJSON{runDocument: runs[0]}
	if len(runs) > 1 {
		out.Runs = runs
	}
	return console.JSON(out)
}

// text formats the periods of each run, and a table of all runs last.
func (d tryDocument) text() string {
	var out strings.Builder
	var rows [][]string
	for _, r := range d {
		fmt.Fprintf(&out, "%s\n\n%s\n", console.Heading(r.title()), r.periods())
		rows = append(rows, r.summary())
	}
	out.WriteString(console.Table([]console.Column{
		console.Left("POLICY"), console.Number("MAX/MEAN"), console.Number("BEFORE"), console.Number("FLOOR"), console.Number("MAX/BEST"), console.Number("REACHED"), console.Number("KEYS MOVED"),
		console.Number("LAST 10 MIN"), console.Number("RANGES"), console.Number("TOOK"),
	}, rows))
	out.WriteString(d[0].remark())
	return out.String()
}

func (r runDocument) title() string {
	return fmt.Sprintf("%s: %s, %s, %s of %s", r.Policy, r.Workload, console.Counted(r.Owners, "owner"), console.Counted(r.Periods, "period"), r.time(1))
}

func (r runDocument) time(period int) string {
	return console.Brief(time.Duration(float64(period) * r.Period * float64(time.Second)))
}

// The text shows the first periods, in which most moves happen, those in which owners join or leave, and a
// few of the rest.
const (
	shownFirst = 12
	shownRest  = 12
)

func (r runDocument) periods() string {
	every := max(1, (len(r.Series)-shownFirst)/shownRest)
	var rows [][]string
	moves, moved := 0, 0.0 // since the last row
	for i, s := range r.Series {
		moves += s.Moves
		moved += s.Moved
		joined := i > 0 && r.Series[i-1].Owners != s.Owners
		if i >= shownFirst && (i-shownFirst)%every != 0 && i < len(r.Series)-1 && !joined {
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(s.Period), r.time(s.Period), console.Grouped(uint64(s.Owners)), ratio(s.MaxOverMean), console.Grouped(uint64(s.OverTarget)),
			console.Grouped(uint64(moves)), console.Percent(moved), console.Grouped(uint64(s.Ranges)),
		})
		moves, moved = 0, 0
	}
	return console.Table([]console.Column{
		console.Number("PERIOD"), console.Number("TIME"), console.Number("OWNERS"), console.Number("MAX/MEAN"), console.Number("ABOVE " + ratio(r.Target)),
		console.Number("MOVES"), console.Number("KEYS MOVED"), console.Number("RANGES"),
	}, rows)
}

func ratio(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

func (r runDocument) summary() []string {
	reached, state := console.Bad("never"), console.Bad
	if r.PeriodsToTarget >= 0 {
		reached, state = console.Good(fmt.Sprintf("period %d", r.PeriodsToTarget)), console.Good
	}
	return []string{
		r.Policy, state(ratio(r.MaxOverMean)), ratio(r.StartMaxOverMean), ratio(r.Floor), ratio(r.MaxOverUnavoidable), reached, console.Percent(r.KeysMoved),
		console.Counted(r.MovesAfterStable, "move"), console.Grouped(uint64(r.Ranges)), console.Brief(time.Duration(r.Elapsed * float64(time.Second))),
	}
}

// remark explains an unreachable target.
func (r runDocument) remark() string {
	if r.Floor <= r.Target {
		return ""
	}
	return fmt.Sprintf("No policy reaches %s: at the end the hottest key alone is %s times the mean.\n", ratio(r.Target), ratio(r.HottestKeyOverMean))
}
