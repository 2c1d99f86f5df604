package policylab

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// exactMeter counts without noise: a cost of 1 is 100 requests in a period of 10 s, which is 10 per second.
func exactMeter(cells int) *meter {
	c := Config{Cells: cells, Period: 10 * time.Second}
	return newMeter(&c, 100)
}

func ignoreMoves(leasehold.Range, int, int) {}

// observe runs one period of a load.
func (m *meter) observe(load *Load, owners, period int) {
	theirs := make([]float64, owners)
	m.carry(load, theirs)
	m.measure(load, theirs, period)
}

const half = leasehold.Key(1 << 63)

// TestNewRangesAreNotReported: an owner does not report a range that has just moved, but continues to report the
// others.
func TestNewRangesAreNotReported(t *testing.T) {
	load := newLoad(nil, []RangeCost{{leasehold.All, 1}})
	m := exactMeter(1)
	reported := func(period int) []leasehold.Range {
		m.observe(load, 2, period)
		var ranges []leasehold.Range
		for _, c := range m.loads(2, period).Cells {
			if want := 10 * share(c.Range); !near(c.Rate, want) {
				t.Errorf("period %d: %v has rate %v, want %v", period, c.Range, c.Rate, want)
			}
			ranges = append(ranges, c.Range)
		}
		return ranges
	}
	m.assign([]span{{0, 0}, {half, 1}}, 2, 0, ignoreMoves)
	if got := reported(0); len(got) != 0 {
		t.Errorf("in the first period, %v is reported", got)
	}
	if got := reported(1); len(got) != 2 {
		t.Errorf("in the second period, %v is reported", got)
	}
	// Owner 0 gets a quarter from owner 1.
	m.assign([]span{{0, 0}, {half + half/2, 1}}, 2, 2, ignoreMoves)
	if got := reported(2); len(got) != 2 || got[0].Limit != half || got[1].Start != half+half/2 {
		t.Errorf("after the move, %v is reported", got)
	}
	if got := reported(3); len(got) != 3 {
		t.Errorf("in the second period after the move, %v is reported", got)
	}
	// When it has settled, it is merged with the adjacent range.
	m.assign([]span{{0, 0}, {half + half/2, 1}}, 2, 4, ignoreMoves)
	if got := reported(4); len(got) != 2 || got[0].Limit != half+half/2 {
		t.Errorf("after settledAfter periods, %v is reported", got)
	}
}

// TestEstimatesAreSmoothed: estimates, also of a hot key, follow a change exponentially.
func TestEstimatesAreSmoothed(t *testing.T) {
	m := exactMeter(1)
	m.assign([]span{{0, 0}}, 1, 0, ignoreMoves)
	costs := func(all float64) *Load {
		return newLoad([]KeyCost{{half, all / 2}}, []RangeCost{{leasehold.All, all / 2}})
	}
	quiet, busy := costs(1), costs(2)
	const before = 50
	for period := range before {
		m.observe(quiet, 1, period)
	}
	for n := 1; n < 5; n++ {
		m.observe(busy, 1, before+n-1)
		want := 20 - 10*math.Exp(-float64(n)*10/15)
		got := m.loads(1, before+n-1)
		if all := got.Cells[0].Rate; math.Abs(all-want) > 1e-6 {
			t.Errorf("after %d periods the estimate is %v, want %v", n, all, want)
		}
		if len(got.Hot) != 1 || math.Abs(got.Hot[0].Rate-want/2) > 1e-6 {
			t.Errorf("after %d periods the hot keys are %v, want one of %v", n, got.Hot, want/2)
		}
	}
}

// TestEstimatesFollowHotKeys: when cells change, the estimate of a hot key stays with the key.
func TestEstimatesFollowHotKeys(t *testing.T) {
	hot := half + 12345
	load := newLoad([]KeyCost{{hot, 1}}, []RangeCost{{leasehold.All, 1}})
	m := exactMeter(1)
	m.assign([]span{{0, 0}}, 2, 0, ignoreMoves)
	m.observe(load, 2, 0)
	m.observe(load, 2, 1)
	// The hot key is near the lower end of the remaining range.
	m.assign([]span{{0, 1}, {half, 0}}, 2, 2, ignoreMoves)
	last := m.cells[len(m.cells)-1]
	if want := 100 * (1 + 0.5); !near(last.rate, want) {
		t.Errorf("the upper half has %v requests, want %v", last.rate, want)
	}
}

// TestHotKeys: an owner reports keys with at least a hundredth of its load, the hottest first, up to the
// limit of a message.
func TestHotKeys(t *testing.T) {
	var keys []KeyCost
	for i := range 90 { // each at least 1.1 % of the load of owner 0, 10,000
		keys = append(keys, KeyCost{leasehold.Key(i) << 50, 110 + 0.1*float64(i)})
	}
	keys = append(keys, KeyCost{half, 50}, KeyCost{half + 1, 7000}) // of owner 1: 50 is less than a hundredth
	rest := 10_000.0
	for _, k := range keys[:90] {
		rest -= k.Cost
	}
	load := newLoad(keys, []RangeCost{{leasehold.Range{Limit: half}, rest}})
	m := exactMeter(64)
	m.assign([]span{{0, 0}, {half, 1}}, 2, 0, ignoreMoves)
	m.observe(load, 2, 0)
	m.observe(load, 2, 1)
	got := m.loads(2, 1)
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(got.Hot) != protocol.MaxHotKeys+1 {
		t.Fatalf("%d hot keys", len(got.Hot))
	}
	for i, h := range got.Hot[:protocol.MaxHotKeys] {
		if want := leasehold.Key(i+90-protocol.MaxHotKeys) << 50; h.Key != want {
			t.Errorf("hot key %d is %v, want %v: the hottest", i, h.Key, want)
		}
	}
	if h := got.Hot[protocol.MaxHotKeys]; h.Key != half+1 || !near(h.Rate, 70_000) {
		t.Errorf("the hottest of owner 1 is %+v", h)
	}
}
