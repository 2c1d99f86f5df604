package owner

import (
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An eavesdropper is a leader that records the load reports of owners.
type eavesdropper struct {
	*leader
	mu    sync.Mutex
	heard []*protocol.LeaseRequest
	at    []time.Time
}

type overheard struct {
	grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	by *eavesdropper
}

func (o overheard) Recv() (*leaseholdv1.HoldRequest, error) {
	in, err := o.BidiStreamingServer.Recv()
	if err != nil {
		return nil, err
	}
	if r, err := wire.ToLeaseRequest(in, protocol.DefaultLimits); err == nil {
		o.by.mu.Lock()
		o.by.heard, o.by.at = append(o.by.heard, r), append(o.by.at, time.Now())
		o.by.mu.Unlock()
	}
	return in, nil
}

func (e *eavesdropper) Hold(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	return e.leader.Hold(overheard{stream, e})
}

func (n *network) overhear(cfg manager.Config) *eavesdropper {
	l, stop := n.lead(cfg)
	stop()
	e := &eavesdropper{leader: l}
	n.serve(leaderAddr, e)
	return e
}

// newest returns the newest request with a load report.
func (e *eavesdropper) newest(t *testing.T) *protocol.LeaseRequest {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(e.heard) - 1; i >= 0; i-- {
		if e.heard[i].Loads != nil {
			return e.heard[i]
		}
	}
	t.Fatal("no request has a load report")
	return nil
}

// work calls f ten times a second.
func work(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	for range d / (100 * time.Millisecond) {
		f()
		time.Sleep(100 * time.Millisecond)
	}
	synctest.Wait()
}

func wantRate(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want/10 {
		t.Errorf("%s: %v per second, want about %v", what, got, want)
	}
}

// Successful checks are the load, per range, with the hottest key;
// calls of Held are not.
func TestLoadOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		e := n.overhear(manager.Config{})
		o := mustJoin(t, n.config("10.0.0.1:8080"))
		const hot = leasehold.Key(1)<<63 + 5
		work(t, 30*time.Second, func() {
			for _, key := range keys()[64:192] {
				o.Check(key)
			}
			for range 32 {
				lease, _ := o.Check(hot)
				o.Held(lease)
			}
		})
		r := e.newest(t)
		wantRate(t, "all", r.Load, 1600)
		sum, upper := 0.0, 0.0
		for _, c := range r.Loads.Cells {
			sum += c.Rate
			if c.Range.Start >= 1<<63 {
				upper += c.Rate
			}
		}
		if sum != r.Load {
			t.Errorf("the sum of the cells is %v, the load %v", sum, r.Load)
		}
		wantRate(t, "the upper half", upper, 640+320)
		if len(r.Loads.Hot) != 1 || r.Loads.Hot[0].Key != hot {
			t.Fatalf("hot keys %v", r.Loads.Hot)
		}
		wantRate(t, "the hot key", r.Loads.Hot[0].Rate, 320)
	})
}

// With LoadReported the load is the sum of the reported costs, without checks.
func TestReportedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		e := n.overhear(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		cfg.Load = LoadReported
		o := mustJoin(t, cfg)
		work(t, 30*time.Second, func() {
			o.Check(1)
			o.Report(1, 0.25)
			o.Report(1<<63, 2.25)
		})
		wantRate(t, "all", e.newest(t).Load, 25)
	})
}

// The leader receives the load per range every five seconds, and
// the sum in between.
func TestLoadReportInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		timing := protocol.Timing{Lease: 2 * time.Second, Renew: 500 * time.Millisecond, Drift: 1.2}
		e := n.overhear(manager.Config{Timing: timing})
		o := mustJoin(t, n.config("10.0.0.1:8080"))
		work(t, 50*time.Second, func() { o.Check(1) })
		e.mu.Lock()
		defer e.mu.Unlock()
		said, last := 0, time.Time{}
		for i, r := range e.heard {
			if r.Loads == nil {
				continue
			}
			if gap := e.at[i].Sub(last); gap < reportInterval || said > 0 && gap > reportInterval+timing.Renew {
				t.Errorf("%d: after %v", i, gap)
			}
			said, last = said+1, e.at[i]
		}
		if said < 8 || len(e.heard) < 30 {
			t.Errorf("%d load reports in %d requests", said, len(e.heard))
		}
		if load := e.heard[len(e.heard)-1].Load; load < 9 || load > 11 {
			t.Errorf("the load is %v", load)
		}
	})
}

// Invalid costs are ignored, and logged once a minute with
// the cost and the caller.
func TestReportOfInvalidCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		e := n.overhear(manager.Config{})
		var log eventLog
		cfg := n.config("10.0.0.1:8080")
		cfg.Load, cfg.Logger = LoadReported, log.logger()
		o := mustJoin(t, cfg)
		work(t, 61*time.Second, func() {
			for _, cost := range []float64{-1, math.NaN(), math.Inf(1), 2 * MaxCost, 1} {
				o.Report(7, cost)
			}
		})
		wantRate(t, "all", e.newest(t).Load, 10)
		if got := log.count("reported cost ignored: want 0 to 1e+12"); got != 2 {
			t.Errorf("%d log lines: %q", got, log.lines)
		}
		for _, part := range []string{"cost=-1", "key=0000000000000007", "load_test.go:", `"ignored before"=2399`} {
			if log.count(part) == 0 {
				t.Errorf("%s is missing in %q", part, log.lines)
			}
		}
	})
}

// Report without LoadReported is logged.
func TestReportWithLoadChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		var log eventLog
		cfg := n.config("10.0.0.1:8080")
		cfg.Logger = log.logger()
		mustJoin(t, cfg).Report(7, 1)
		if log.count("Config.Load is not LoadReported") != 1 {
			t.Errorf("%q", log.lines)
		}
	})
}

func TestUnknownLoadSource(t *testing.T) {
	cfg := newNetwork(t).config("10.0.0.1:8080")
	cfg.Load = 7
	if err := cfg.validate(); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "Load is 7") {
		t.Errorf("error %v", err)
	}
}
