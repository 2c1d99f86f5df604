package locks

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestMain runs roles in the test binary.
func TestMain(m *testing.M) {
	Play()
	os.Exit(m.Run())
}

// TestEtcd: a locked key cannot be locked again until it is released.
func TestEtcd(t *testing.T) {
	c, err := StartEtcd(t.Context(), 3, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	perClient, err := c.PerClient(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Service{"lock": c.PerLock(time.Minute), "client": perClient, "newcomers": c.Newcomers()} {
		for range 2 {
			got, err := e.Acquire(t.Context(), 20, name)
			if err != nil || got.Leases != 20 || got.CPU <= 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if _, err := e.Acquire(t.Context(), 1, name); err == nil || !strings.Contains(err.Error(), "locked already") {
				t.Errorf("%s: acquired twice: %v", name, err)
			}
			if err := e.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A fake takes a second for each lease.
type fake struct {
	held  int
	names []string
	fail  error
}

func (f *fake) Acquire(_ context.Context, n int, name string) (Turn, error) {
	f.held += n
	f.names = append(f.names, name)
	return Turn{Leases: n, Took: time.Duration(n) * time.Second}, f.fail
}

func (f *fake) Release(context.Context) error {
	f.held = 0
	return nil
}

func TestContest(t *testing.T) {
	a, b := &fake{}, &fake{}
	c := &Contest{Length: 10 * time.Second, Step: func(string, ...any) {}}
	turns, err := c.Rounds(t.Context(), []Entry{{"a", 4, a}, {"b", 4, b}}, 3, "x")
	if err != nil {
		t.Fatal(err)
	}
	// Three batches of 4 seconds are the first that last for 10.
	want := Turn{Leases: 12, Took: 12 * time.Second}
	for i, all := range turns {
		if len(all) != 3 || all[0] != want {
			t.Errorf("contestant %d had turns %v", i, all)
		}
	}
	if a.held != 0 || len(a.names) != 9 {
		t.Errorf("%d leases are held after %d batches", a.held, len(a.names))
	}
	names := slices.Concat(a.names, b.names)
	slices.Sort(names)
	if len(slices.Compact(names)) != 18 {
		t.Errorf("names are used again: %q", names)
	}
	a.fail = errors.New("broken")
	if _, err := c.Rounds(t.Context(), []Entry{{"b", 4, b}, {"a", 4, a}}, 3, "x"); !errors.Is(err, a.fail) || !strings.HasPrefix(err.Error(), "a: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestRateOf(t *testing.T) {
	second := func(leases int) Turn {
		return Turn{Leases: leases, Took: time.Second, CPU: time.Duration(leases) * time.Millisecond}
	}
	for name, c := range map[string]struct {
		turns []Turn
		want  Rate
	}{
		"none": {},
		"odd":  {[]Turn{second(9), second(1), second(2)}, Rate{report.Summary{Median: 2, Low: 1, High: 9, Turns: 3}, 1000}},
		// What counts is the rate and not how long a turn was.
		"lengths": {[]Turn{
			{Leases: 10, Took: 2 * time.Second, CPU: 20}, {Leases: 1, Took: time.Second / 2, CPU: 4_000}, {Leases: 8, Took: time.Second, CPU: 8_000},
		}, Rate{report.Summary{Median: 5, Low: 2, High: 8, Turns: 3}, 1}},
		"empty": {[]Turn{{}}, Rate{Summary: report.Summary{Turns: 1}}},
	} {
		if diff := cmp.Diff(c.want, RateOf(c.turns)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
