package flease

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
)

// TestMain lets the test binary run in roles, as the program does.
func TestMain(m *testing.M) {
	locks.Play()
	proc.Play(Roles())
	os.Exit(m.Run())
}

func TestFlease(t *testing.T) {
	f, err := startFlease(t.Context(), 2*time.Second, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.members.Close()
	for _, name := range []string{"b1", "b2"} {
		got, err := f.Acquire(t.Context(), proposers*50, name)
		if err != nil || got.Leases == 0 || got.Leases > proposers*50 || got.Took <= 0 || got.CPU < 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestMemberReportsErrors(t *testing.T) {
	_, err := proc.Start(t.Context(), roleFlease, fleasebench.MemberConfig{Self: 9, Members: []string{"127.0.0.1:1"}})
	if err == nil || !strings.HasPrefix(err.Error(), roleFlease) {
		t.Errorf("the error is %v", err)
	}
}

// at returns a point with the given rate.
func at(name string, rate float64) point {
	return point{name, usualBatch, locks.Rate{Summary: report.Summary{Median: rate, Low: rate, High: rate}, Effort: 5}}
}

func TestConclude(t *testing.T) {
	for name, c := range map[string]struct {
		flease, perClient, largest float64
		missed                     string // part of the goal
	}{
		"all met":   {300_000, 6_000, 290_000, ""},
		"too slow":  {199_000, 6_000, 190_000, "200,000 leases/s"},
		"not by 20": {300_000, 16_000, 290_000, "20 times the fastest use of etcd (etcd, lease per client)"},
		"not flat":  {300_000, 6_000, 200_000, "size of batches"},
	} {
		r := &report.Result{}
		concludeContest(r, []point{at(nameFlease, c.flease), at(nameEtcd, 3_000), at(nameEtcdClient, c.perClient)})
		concludeBatches(r, []point{
			at(nameFlease, c.flease), at(nameEtcd, 3_000), at(nameEtcdClient, c.perClient),
			at(nameFlease, c.largest), at(nameEtcd, 3_000), at(nameEtcdClient, c.perClient),
		})
		var missed []string
		for _, g := range r.Goals {
			if !g.Met {
				missed = append(missed, g.Want)
			}
		}
		if len(r.Goals) != 3 || len(r.Headlines) != 3 || !strings.Contains(strings.Join(missed, ""), c.missed) || (c.missed == "") != (missed == nil) {
			t.Errorf("%s: missed %q of %+v, headlines %+v", name, missed, r.Goals, r.Headlines)
		}
	}
}
