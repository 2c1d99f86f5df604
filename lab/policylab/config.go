package policylab

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// A Config configures a run. A field that is 0 has its default, except where 0 is a valid value: see [Usual].
type Config struct {
	Policy   partition.Policy
	Start    partition.Policy // assigns period 0; nil means Policy
	Workload Workload

	Owners  int       // 1 to MaxOwners
	Weights []float64 // of the owners, repeated; nil means 1
	Changes []Change

	Periods int           // 1 to MaxPeriods
	Period  time.Duration // time between two decisions, 1 s to 1 h
	Churn   float64       // share of all keys that may move per minute, for balance

	// Noise makes the counts of owners random: a Poisson process with a mean of Requests per owner of weight
	// 1 and period.
	Noise    bool
	Requests float64
	Seed     uint64

	// Cells is the number of cells in an owner's report, at most protocol.MaxCells; 0 means [CellsFor].
	Cells     int
	MaxRanges int // 0 means partition.DefaultMaxRanges

	Target    float64 // of MaxOverMean
	MeanLoad  float64 // mean load of owners; only for Result.Loads
	KeepLoads bool    // fill Result.Loads

	Progress func(period int) // called after each period, if not nil
}

// Limits of a Config. They bound the memory of a run.
const (
	MaxOwners   = 100_000
	MaxPeriods  = 100_000
	maxRequests = 1e6 // so that no rate is above partition.MaxRate
	maxChanges  = 1000
	maxKept     = 1 << 27 // numbers in Result.Loads
	maxCells    = 1 << 23 // of all owners
)

// Usual returns the default configuration, without policy and workload.
func Usual() Config {
	return Config{
		Owners: 250, Period: 10 * time.Second, Periods: 70, Churn: partition.DefaultChurn,
		Noise: true, Requests: 20_000, Seed: 1, Target: 1.2, MeanLoad: 0.2,
	}
}

// usualCells is the number of cells in an owner's report, as long as the total is at most usualTotal, which a
// real manager limits too.
const (
	usualCells = 512
	usualTotal = 1 << 17
)

// CellsFor returns the default number of cells in the report of each of a number of owners.
func CellsFor(owners int) int { return min(usualCells, max(16, usualTotal/owners)) }

// Validate returns an error for invalid values, and sets defaults.
func (c *Config) Validate() error {
	if c.Policy == nil || c.Workload == nil {
		return invalid("policy", "a policy and a workload are required")
	}
	if len(c.Weights) == 0 {
		c.Weights = []float64{1}
	}
	for _, w := range c.Weights {
		if !(w > 0 && w <= partition.MaxWeight) { // in this form, NaN fails
			return invalid("weights", "one is %v, want more than 0 and at most %d", w, partition.MaxWeight)
		}
	}
	if c.Owners < 1 || c.Owners > MaxOwners {
		return invalid("owners", "is %d, want 1 to %d", c.Owners, MaxOwners)
	}
	if err := c.validateTime(); err != nil {
		return err
	}
	most, err := c.validateChanges()
	if err != nil {
		return err
	}
	if c.KeepLoads && most*c.Periods > maxKept {
		return invalid("periods", "%d owners in %d of them are too many loads to keep: want at most %d numbers", most, c.Periods, maxKept)
	}
	return c.validateReports(most)
}

func (c *Config) validateTime() error {
	switch { // in this form, NaN fails
	case c.Periods < 1 || c.Periods > MaxPeriods:
		return invalid("periods", "is %d, want 1 to %d", c.Periods, MaxPeriods)
	case c.Period < time.Second || c.Period > time.Hour:
		return invalid("period", "is %v, want 1s to 1h", c.Period)
	case !(c.Churn >= 0 && c.Churn <= 1):
		return invalid("churn", "is %v, want 0 to 1: the share of all keys that may move per minute", c.Churn)
	case !(c.Target >= 1 && c.Target <= 1000):
		return invalid("target", "is %v, want 1 to 1000: the load of the most loaded owner divided by the mean", c.Target)
	case !(c.MeanLoad > 0 && c.MeanLoad <= 1):
		return invalid("mean-load", "is %v, want more than 0 and at most 1", c.MeanLoad)
	}
	return nil
}

// validateChanges also returns the total number of owners.
func (c *Config) validateChanges() (owners int, err error) {
	if len(c.Changes) > maxChanges {
		return 0, invalid("join", "and leave %d times, want at most %d", len(c.Changes), maxChanges)
	}
	c.Changes = slices.Clone(c.Changes)
	slices.SortStableFunc(c.Changes, func(a, b Change) int { return cmp.Compare(a.Period, b.Period) })
	all, present := c.Owners, c.Owners
	for _, change := range c.Changes {
		if change.Period < 1 || change.Period >= c.Periods {
			return 0, invalid(change.name(), "is in period %d, want 1 to %d: the run has %d periods", change.Period, c.Periods-1, c.Periods)
		}
		if change.Owners > MaxOwners || change.Owners < -MaxOwners || change.Owners == 0 {
			return 0, invalid(change.name(), "of %d owners, want 1 to %d", max(change.Owners, -change.Owners), MaxOwners)
		}
		if all += max(0, change.Owners); all > MaxOwners {
			return 0, invalid("join", "that makes %d owners, want at most %d", all, MaxOwners)
		}
		if present += change.Owners; present < 1 {
			return 0, invalid("leave", "no owner is left in period %d", change.Period)
		}
	}
	return all, nil
}

func (c *Config) validateReports(owners int) error {
	if c.Cells == 0 {
		c.Cells = CellsFor(owners)
	}
	switch {
	case c.Cells < 1 || c.Cells > protocol.MaxCells:
		return invalid("cells", "is %d per owner, want 1 to %d", c.Cells, protocol.MaxCells)
	case c.Cells*owners > maxCells:
		return invalid("cells", "makes %d of all owners together, want at most %d: use fewer", c.Cells*owners, maxCells)
	case !(c.Requests > 0 && c.Requests <= maxRequests):
		return invalid("requests", "is %v per owner and period, want more than 0 and at most %g", c.Requests, float64(maxRequests))
	case c.MaxRanges < 0:
		return invalid("max-ranges", "is %d, want at least 1", c.MaxRanges)
	}
	return nil
}

func invalid(subject, format string, args ...any) error {
	return leasehold.Errorf("try a policy", leasehold.ErrInvalid, subject, format, args...)
}
