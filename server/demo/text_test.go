package demo

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

func someReport() Report {
	return Report{
		Seconds: 12.34,
		CallCounts: CallCounts{
			Requests: 12000, Misroutes: 1, Retries: 1, Availability: 0.95, Eventually: 1, FirstTry: 0.98, MedianMillis: 1.25, P99Millis: 31,
		},
		LossCounts:      LossCounts{Losses: 14, LossesFor: map[string]uint64{"expired": 2, "restarted": 12}, Republished: 1},
		OwnershipCounts: OwnershipCounts{Checked: 12001, Tenures: 3000},
		FaultCounts: FaultCounts{OwnersKilled: 1, OwnersStopped: 1, Restarts: 3, LeadersKilled: 2, FailoverMillis: []int64{2840, 2400},
			RecoveryMillis: []float64{11764, 12.5, 9.5}, RecoveryMedianMillis: 12.5, RecoveryMaxMillis: 11764},
	}
}

func TestText(t *testing.T) {
	r := someReport()
	r.Kept = "/tmp/x"
	const want = `Demo
requests      12,000 in 12.3 s, 98.00 % at the first try; half within 1.2 ms, 99 % within 31.0 ms of when they were due
availability  95.00 % succeeded within 1 s, 100.00 % in the end: 0 failures, 1 retry, 1 refused by a server that was not the owner
killed        2 leaders, 1 owner; 1 owner stopped for longer than its leases last; 3 owners restarted, for which 0 ranges lost
recovery      the keys of a killed owner had the next one after 12 ms (median), 11,764 ms at most, without supervisors
failover      2.8 s, 2.4 s; 0 leases lost in it
losses        users were notified of 14 lost ranges (2 expired, 12 restarted), and set 1 status again; 0 silent
ownership     0 dual ownerships in 3,000 tenures and 12,001 operations
kept          /tmp/x
`
	if diff := cmp.Diff(want, ansi.Strip(r.Text())); diff != "" {
		t.Error(diff)
	}
}

func rollingReport() Report {
	r := someReport()
	r.Losses, r.LossesFor, r.Republished, r.FailoverMillis, r.RecoveryMillis = 0, nil, 0, nil, nil
	r.Rolling, r.Restarts, r.Rounds, r.MovedRanges, r.MovedShare = true, 10, 1, 182, 1.94
	r.Keys, r.ValueSize, r.LookedUp = 1000000, 200, 1000000
	r.Unavailable = Unavailability{Keys: 500, Times: 972, Median: 12.25, P99: 41, Max: 60.5}
	return r
}

func TestRollingText(t *testing.T) {
	r := rollingReport()
	const want = `Rolling restart
requests      12,000 in 12.3 s, 98.00 % at the first try; half within 1.2 ms, 99 % within 31.0 ms of when they were due
availability  95.00 % succeeded within 1 s, 100.00 % in the end: 0 failures, 1 retry, 1 refused by a server that was not the owner
restarted     10 owners, in 1 whole round; 182 ranges moved, which makes each key move 1.9 times
unavailable   a key that moved: half within 12.2 ms, 99 % within 41.0 ms, 60.5 ms at most; seen 972 times on 500 keys
keys          1,000,000 of 200 bytes; 1,000,000 looked through at the end
losses        users were notified of 0 lost ranges, and set 0 statuses again; 0 silent
ownership     0 dual ownerships in 3,000 tenures and 12,001 operations
`
	if diff := cmp.Diff(want, ansi.Strip(r.Text())); diff != "" {
		t.Error(diff)
	}
}
