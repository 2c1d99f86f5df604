package availability

import (
	"os"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// TestMain runs roles and managers in the test binary.
func TestMain(m *testing.M) {
	managers.Play()
	proc.Play(Roles())
	os.Exit(m.Run())
}

// TestDrain: a server is shut down and returns, and no operation fails.
func TestDrain(t *testing.T) {
	s, err := newSite(t.Context(), t.TempDir(), 2, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.measureEvent(t.Context(), events()[0])
	if err != nil || got.failed > 0 || got.service <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReport: each event has its headlines and goals.
func TestReport(t *testing.T) {
	r := &report.Result{Benchmark: "availability"}
	all := events()
	outcomes := make([][]outcome, len(all))
	for i := range all {
		outcomes[i] = []outcome{{service: 500 * time.Millisecond, changes: time.Second}}
	}
	reportEvents(r, all, outcomes)
	reportReset(r, &resets{
		normal: []time.Duration{time.Millisecond}, dies: []time.Duration{time.Millisecond, 11 * time.Second}, back: []time.Duration{time.Second / 2},
	})
	if len(r.Headlines) != 6 || len(r.Goals) != 7 || r.Missed() != 0 {
		t.Errorf("headlines %+v, goals %+v", r.Headlines, r.Goals)
	}
}
