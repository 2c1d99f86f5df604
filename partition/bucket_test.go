package partition_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

func TestBucketCapacityIsTwoIntervals(t *testing.T) {
	const every = 10 * time.Second
	b := partition.Bucket{Churn: 0.06, Every: every}
	level := func(want float64) {
		t.Helper()
		if got := b.Level(); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("level %v, want %v", got, want)
		}
	}
	level(0)
	b = b.After(every)
	level(0.01)
	b = b.After(every)
	level(0.02)
	b = b.After(time.Hour)
	level(0.02)
	b = b.Spend(0.015)
	level(0.005)
	b = b.Spend(0.5)
	level(0)
	b = b.After(-time.Hour)
	level(0)
	b = b.After(every)
	level(0.01)
}

func TestBucketLevelIsAtMostOne(t *testing.T) {
	b := partition.Bucket{Churn: 1, Every: time.Hour}.After(time.Hour)
	if got := b.Level(); got != 1 {
		t.Errorf("level %v, want 1", got)
	}
}

// If every decision spends at most the level, no interval exceeds
// the documented bound.
func TestBucketBoundsChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		churn := rapid.Float64Range(0, 1).Draw(t, "churn")
		every := time.Duration(rapid.IntRange(1, 3600).Draw(t, "every")) * time.Second
		b := partition.Bucket{Churn: churn, Every: every}.After(time.Duration(rapid.IntRange(0, 9999).Draw(t, "before")) * time.Second)
		spent, passed := 0.0, time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "decisions") {
			share := b.Level() * rapid.Float64Range(0, 1).Draw(t, "part")
			spent += share
			b = b.Spend(share)
			if most := churn*passed.Minutes() + 2*churn*every.Minutes(); spent > most+1e-9 {
				t.Fatalf("%v moved in %v, want at most %v", spent, passed, most)
			}
			d := time.Duration(rapid.IntRange(0, 7200).Draw(t, "wait")) * time.Second
			passed += d
			b = b.After(d)
		}
	})
}
