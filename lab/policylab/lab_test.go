package policylab

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// A spy records the input of a policy.
type spy struct {
	partition.Policy
	inputs []partition.Input
}

func (s *spy) Assign(in partition.Input) (partition.Assignment, error) {
	in.Loads.Cells = append([]partition.Cell(nil), in.Loads.Cells...)
	in.Members = append([]partition.Member(nil), in.Members...)
	s.inputs = append(s.inputs, in)
	return s.Policy.Assign(in)
}

// flipper assigns everything to one of the members, and to another one every other period: the worst of all
// policies.
type flipper struct{}

func (flipper) Name() string { return "flipper" }

func (flipper) Assign(in partition.Input) (partition.Assignment, error) {
	first, last := in.Members[0].Owner, in.Members[len(in.Members)-1].Owner
	if in.Current.OwnerAt(0) == first {
		return partition.Assignment{{Owner: last}}, nil
	}
	return partition.Assignment{{Owner: first}}, nil
}

// small returns a configuration that is quick to run.
func small(p partition.Policy, w Workload) Config {
	c := Usual()
	c.Policy, c.Workload, c.Owners, c.Cells, c.Periods = p, w, 4, 16, 8
	return c
}

func zipf(t *testing.T, alpha, keys float64) Workload {
	t.Helper()
	w, err := Zipf{Alpha: alpha, Keys: keys, Seed: 1}.Workload()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustRun(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPolicyReceivesReports: first no reports; then the measured loads of their own keys, close to the
// true ones.
func TestPolicyReceivesReports(t *testing.T) {
	s := &spy{Policy: partition.Even{}}
	c := small(s, zipf(t, 0.8, 1000))
	mustRun(t, c)
	for period, in := range s.inputs {
		if (in.Current == nil) != (period == 0) {
			t.Errorf("period %d: current is %v", period, in.Current)
		}
		if known := len(in.Loads.Cells) > 0; known != (period >= 2) {
			t.Errorf("period %d: there are %d cells", period, len(in.Loads.Cells))
		}
		if period < 2 {
			continue
		}
		total := 0.0
		for _, cell := range in.Loads.Cells {
			total += cell.Rate
		}
		// 4 owners count 20,000 requests in 10 s.
		if math.Abs(total-8000) > 5*math.Sqrt(8000) || total == 8000 {
			t.Errorf("period %d: the owners report %v requests per second", period, total)
		}
	}
}

// TestMovingKeysAreNotReported: there are no reports about keys that move in every period.
func TestMovingKeysAreNotReported(t *testing.T) {
	s := &spy{Policy: flipper{}}
	r := mustRun(t, small(s, Uniform()))
	for period, in := range s.inputs {
		if len(in.Loads.Cells) > 0 {
			t.Errorf("period %d: %v", period, in.Loads.Cells)
		}
	}
	if moved, forced := r.KeysMoved(); moved != 7 || forced != 0 {
		t.Errorf("%v of the keys moved, %v were forced to", moved, forced)
	}
	if r.MovesAfterStable() != 7 || r.Last().MaxOverMean != 4 || r.PeriodsToTarget() != -1 {
		t.Errorf("%d moves, %+v", r.MovesAfterStable(), r.Last())
	}
}

// TestBudget: unused budget is kept for one more decision, and moves are deducted.
func TestBudget(t *testing.T) {
	s := &spy{Policy: partition.Even{}}
	mustRun(t, small(s, Uniform()))
	var got []float64
	for _, in := range s.inputs[:4] {
		got = append(got, math.Round(in.Budget*1e6)/1e6)
	}
	if diff := cmp.Diff([]float64{0, 0.015, 0.03, 0.03}, got); diff != "" {
		t.Error(diff)
	}
	s = &spy{Policy: flipper{}}
	c := small(s, Uniform())
	c.Owners = 1
	c.Changes = []Change{{Period: 3, Owners: 1}} // moves to an owner without keys are not deducted
	mustRun(t, c)
	if got := s.inputs[4].Budget; math.Round(got*1e6) != 30_000 {
		t.Errorf("after a join, the budget is %v", got)
	}
}

// TestLoadsOfOwnersAddUp: the sum of the owners' loads is the total load, while owners join and leave.
func TestLoadsOfOwnersAddUp(t *testing.T) {
	c := small(partition.Consistent{}, zipf(t, 0.8, 1e4))
	c.Weights, c.KeepLoads = []float64{1, 2}, true
	c.Changes = []Change{{Period: 5, Owners: -2}, {Period: 2, Owners: 3}}
	r := mustRun(t, c)
	// The mean load of 4 owners of weights 1, 2, 1, 2 is 20 %.
	for period, busy := range r.Loads {
		sum := 0.0
		for i, b := range busy {
			sum += float64(b) * c.Weights[i%2]
		}
		if math.Abs(sum-0.2*6) > 1e-6 {
			t.Errorf("period %d: the sum of the loads is %v", period, sum)
		}
	}
	for period, want := range []int{4, 4, 7, 7, 7, 5, 5, 5} {
		if got := r.Samples[period].Owners; got != want {
			t.Errorf("period %d: %d owners, want %d", period, got, want)
		}
	}
	if s := r.Samples[5]; s.Forced <= 0 || !near(s.Moved, s.Forced) {
		t.Errorf("%v moved from owners that left, of %v in total", s.Forced, s.Moved)
	}
	if s := r.Samples[2]; s.Forced != 0 || s.Moved <= 0 {
		t.Errorf("%v moved to owners that joined, %v were forced to", s.Moved, s.Forced)
	}
}

// TestFloor: the owner of the hottest key has at least the load of that.
func TestFloor(t *testing.T) {
	hot, err := Hot(0.5, Zipf{Alpha: 0, Keys: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		weights []float64
		floor   float64
	}{
		{[]float64{1}, 5}, // half of all load, with a mean of a tenth
		{[]float64{1, 1, 1, 1, 6}, 5.0 / 3},
		{[]float64{1, 1, 1, 1, 16}, 1.25},
	} {
		c := small(partition.Consistent{}, hot)
		c.Owners, c.Weights = 10, test.weights
		s := mustRun(t, c).Last()
		if !near(s.Floor, test.floor) || s.MaxOverMean < s.Floor {
			t.Errorf("weights %v: floor %v, want %v; max %v", test.weights, s.Floor, test.floor, s.MaxOverMean)
		}
	}
	c := small(partition.Even{}, Uniform())
	if s := mustRun(t, c).Last(); s.Floor != 1 || !near(s.MaxOverMean, 1) || s.HottestOverMean != 0 || s.OverTarget != 0 {
		t.Errorf("even slices of an even load: %+v", s)
	}
}

// TestMaxOverUnavoidable: an owner of a key with half of all load, and a tenth of the rest, has little load
// that could be moved.
func TestMaxOverUnavoidable(t *testing.T) {
	hot, err := Hot(0.5, Zipf{Alpha: 0, Keys: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	c := small(partition.Even{}, hot)
	c.Owners = 10
	s := mustRun(t, c).Last()
	if math.Abs(s.MaxOverMean-5.5) > 0.01 || math.Abs(s.MaxOverUnavoidable-1.1) > 0.01 {
		t.Errorf("max over mean %v, over unavoidable %v", s.MaxOverMean, s.MaxOverUnavoidable)
	}
}

// TestRunsRepeat: equal configurations have equal results, and another seed has a different one.
func TestRunsRepeat(t *testing.T) {
	c := small(partition.Balanced{}, zipf(t, 0.8, 1e4))
	c.Owners, c.Changes = 40, []Change{{Period: 3, Owners: -5}}
	first := mustRun(t, c)
	if diff := cmp.Diff(first, mustRun(t, c)); diff != "" {
		t.Error(diff)
	}
	c.Seed = 2
	if cmp.Equal(first, mustRun(t, c)) {
		t.Error("the seed changes nothing")
	}
}

// TestPaperWorkload is PRS 7.3 with the default policy: balance within 10 periods, with 9 % of the keys
// moved, and then no moves.
func TestPaperWorkload(t *testing.T) {
	c := Usual()
	c.Policy, c.Workload = partition.Balanced{}, zipf(t, DefaultAlpha, DefaultKeys)
	r := mustRun(t, c)
	moved, _ := r.KeysMoved()
	if n := r.PeriodsToTarget(); n < 0 || n > 10 || moved > 0.09 || r.MovesAfterStable() != 0 {
		t.Errorf("reached after %d periods, %v of the keys moved, %d moves when stable", n, moved, r.MovesAfterStable())
	}
}

func TestPeriodsToTarget(t *testing.T) {
	for _, test := range []struct {
		max  []float64
		want int
	}{
		{[]float64{1}, 0},
		{[]float64{1.3}, -1},
		{[]float64{1.3, 1.1, 1.3, 1.1, 1.2}, 3},
		{[]float64{1.1, 1.1, 1.3}, -1},
	} {
		r := &Result{Target: 1.2, Period: time.Minute}
		for _, m := range test.max {
			r.Samples = append(r.Samples, Sample{MaxOverMean: m, Moves: 1})
		}
		if got := r.PeriodsToTarget(); got != test.want {
			t.Errorf("%v: %d, want %d", test.max, got, test.want)
		}
	}
}

// TestRunFails with the error of the policy, and when the context ends.
func TestRunFails(t *testing.T) {
	c := small(partition.Consistent{}, Uniform())
	c.MaxRanges = 2
	if _, err := c.Run(t.Context()); leasehold.KindOf(err) != leasehold.ErrLimit {
		t.Errorf("too few ranges: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = small(partition.Even{}, Uniform())
	c.Progress = func(period int) {
		if period == 3 {
			cancel()
		}
		if period > 3 {
			t.Error("the run continues after the end of the context")
		}
	}
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"policy":     func(c *Config) { c.Policy = nil },
		"owners":     func(c *Config) { c.Owners = 0 },
		"weights":    func(c *Config) { c.Weights = []float64{1, 0} },
		"periods":    func(c *Config) { c.Periods = 0 },
		"period":     func(c *Config) { c.Period = 0 },
		"churn":      func(c *Config) { c.Churn = math.NaN() },
		"target":     func(c *Config) { c.Target = 0.5 },
		"mean-load":  func(c *Config) { c.MeanLoad = 0 },
		"cells":      func(c *Config) { c.Cells = 5000 },
		"requests":   func(c *Config) { c.Requests = math.Inf(1) },
		"max-ranges": func(c *Config) { c.MaxRanges = -1 },
		"join":       func(c *Config) { c.Changes = []Change{{1, MaxOwners}} },
		"leave":      func(c *Config) { c.Changes = []Change{{2, -4}, {1, -1}} },
	} {
		c := small(partition.Even{}, Uniform())
		change(&c)
		var wrong *leasehold.Error
		if err := c.Validate(); !errors.As(err, &wrong) || wrong.Kind != leasehold.ErrInvalid || wrong.Subject != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
