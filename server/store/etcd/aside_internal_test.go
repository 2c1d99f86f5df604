package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// TestSuccessorsAreActiveAndCaughtUp: only an active voter with a nearly complete log can take
// over leadership.
func TestSuccessorsAreActiveAndCaughtUp(t *testing.T) {
	const commit = 1000
	good := tracker.Progress{RecentActive: true, State: tracker.StateReplicate, Match: commit - transferLag}
	but := func(spoil func(*tracker.Progress)) tracker.Progress {
		p := good
		spoil(&p)
		return p
	}
	end := uint64(commit)
	status := &raft.Status{BasicStatus: raft.BasicStatus{ID: 1, HardState: &raftpb.HardState{Commit: &end}}}
	status.Progress = map[uint64]tracker.Progress{
		1: good, // the leader itself
		9: good,
		2: but(func(p *tracker.Progress) { p.RecentActive = false }),
		3: but(func(p *tracker.Progress) { p.State = tracker.StateProbe }),
		4: but(func(p *tracker.Progress) { p.State = tracker.StateSnapshot }),
		5: but(func(p *tracker.Progress) { p.Match-- }),
		6: but(func(p *tracker.Progress) { p.IsLearner = true }),
		7: good,
	}
	if diff := cmp.Diff([]uint64{7, 9}, successors(status)); diff != "" {
		t.Error(diff)
	}
}

func TestTransferTargetsRotate(t *testing.T) {
	var a aside
	now := time.Now()
	var chosen []uint64
	for _, able := range [][]uint64{{3, 5, 8}, {3, 5, 8}, {3, 5, 8}, {3, 5, 8}, {5}, {5, 8}} {
		id, ok := a.choose(able)
		if !ok {
			t.Fatalf("no target among %v", able)
		}
		a.tried(now, id, nil)
		chosen = append(chosen, id)
	}
	if diff := cmp.Diff([]uint64{3, 5, 8, 3, 5, 8}, chosen); diff != "" {
		t.Error(diff)
	}
	if id, ok := a.choose(nil); ok {
		t.Errorf("%d was chosen without a candidate", id)
	}
}

func TestTransferBackoff(t *testing.T) {
	var a aside
	now := time.Now()
	failed := errors.New("no")
	for i, step := range []struct {
		err  error
		want time.Duration
	}{
		{failed, leastPause},
		{failed, 2 * leastPause},
		{failed, 4 * leastPause},
		{nil, leastPause},
		{failed, 2 * leastPause},
	} {
		a.tried(now, 1, step.err)
		if got := a.until.Sub(now); got != step.want {
			t.Errorf("step %d: backoff of %v, want %v", i, got, step.want)
		}
	}
	for range 20 {
		a.tried(now, 1, failed)
	}
	if got := a.until.Sub(now); got != mostPause {
		t.Errorf("the backoff grows to %v, want %v", got, mostPause)
	}
}
