package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name                 string
		change               func(*Report)
		violation, shortfall string
	}{
		{"fine", func(*Report) {}, "", ""},
		{"dual", func(r *Report) { r.DualOwnership, r.violation = 3, "key 7" }, "instants at which two owners held a key: 3; key 7", ""},
		{"reversal", func(r *Report) { r.GenerationReversals = 1 }, "generations of a key that did not rise: 1", ""},
		{"stale", func(r *Report) { r.StaleAnswers = 1 }, "answers older than what had been acknowledged: 1", ""},
		{"silent", func(r *Report) { r.SilentLosses = 2 }, "acknowledged statuses that were gone without a notified loss: 2", ""},
		{"garbled", func(r *Report) { r.Garbled = 1 }, "answers that were not what the user had set: 1", ""},
		{"failures", func(r *Report) { r.Failures = 1 }, "", "1 of 10 requests failed"},
		{"failures, then interrupted", func(r *Report) { r.Failures, r.Interrupted = 1, true }, "", "requests failed"},
		{"leases", func(r *Report) { r.LeasesLostInFailover = 4 }, "", "leases lost because the leader was replaced: 4"},
		{"renewal", func(r *Report) { r.LostToRenewal = 4 }, "", "leases lost while certificates were renewed: 4"},
		{"no renewal", func(r *Report) { r.TLS = true }, "", "no certificate was renewed"},
		{"unjudged", func(r *Report) { r.unjudged = 1 }, "", "no room"},
		{"nothing killed", func(r *Report) { r.OwnersKilled = 0 }, "", "killed owners: 0, killed leaders: 1"},
		{"nothing asked", func(r *Report) { r.Requests = 0 }, "", "there were no requests"},
		{"nothing watched", func(r *Report) { r.Tenures = 0 }, "", "no owner reported what it held"},
		{"killed for nothing", func(r *Report) { r.Losses = 0 }, "", "no loss was notified; killed owners: 1"},
		{"slow", func(r *Report) { r.Availability = 0 }, "", ""},
		{"interrupted", func(r *Report) { r.Requests, r.OwnersKilled, r.Interrupted = 0, 0, true }, "", ""},
		{"lost by a restart", func(r *Report) { r.ByRestart = 1 }, "", "because owners were restarted, which should move it: 1"},
		{"rolling", func(r *Report) { r.Rolling, r.Restarts, r.Losses, r.OwnersKilled = true, 3, 0, 0 }, "", ""},
		{"rolling, not restarted", func(r *Report) { r.Rolling = true }, "", "no owner was restarted"},
		{"rolling, not moved", func(r *Report) { r.Rolling, r.Restarts, r.MovedRanges = true, 3, 0 }, "", "no range has moved"},
		{"rolling, not looked through", func(r *Report) { r.Rolling, r.Restarts, r.Keys = true, 3, 8 }, "", "only 7 of 8 keys were looked through"},
		{"outage", func(r *Report) { r.outage, r.OutageSeconds, r.Losses, r.OwnersKilled = time.Minute, 60, 0, 0 }, "", ""},
		{"outage with losses", func(r *Report) { r.outage, r.OutageSeconds, r.ByOutage = time.Minute, 60, 3 }, "", "because no manager ran, though their owners did: 3"},
		{"outage, not looked through", func(r *Report) { r.outage, r.OutageSeconds, r.Keys = time.Minute, 60, 8 }, "", "only 7 of 8 keys were looked through"},
		{"no outage", func(r *Report) { r.outage = time.Minute }, "", "the managers were not killed"},
	} {
		r := Report{
			Keys: 7, CallCounts: CallCounts{Requests: 10}, LossCounts: LossCounts{Losses: 2, LookedUp: 7},
			OwnershipCounts: OwnershipCounts{Checked: 10, Tenures: 5},
			FaultCounts:     FaultCounts{OwnersKilled: 1, LeadersKilled: 1, MovedRanges: 1},
		}
		test.change(&r)
		is := func(got, want string) bool { return (got == "") == (want == "") && strings.Contains(got, want) }
		if !is(r.Violation(), test.violation) || !is(r.Shortfall(), test.shortfall) {
			t.Errorf("%s: violation %q, shortfall %q", test.name, r.Violation(), r.Shortfall())
		}
	}
}

// TestTallySharesOfRequests: shares are relative to all requests, and latencies count from the due
// time.
func TestTallySharesOfRequests(t *testing.T) {
	ta := newTally()
	first := outcome{took: 1500 * time.Microsecond, attempts: attempts{made: 1}, owned: true}
	for _, o := range []outcome{
		first, first, first,
		{took: 2 * time.Second, tried: time.Second, attempts: attempts{made: 3, misrouted: 1}, owned: true, republished: true},
		{took: 3 * time.Second, tried: 2 * time.Second, err: leasehold.ErrUnavailable},
	} {
		ta.add(o)
	}
	got := ta.sum().CallCounts
	want := CallCounts{
		Requests: 5, Retries: 2, Failures: 1, Failed: 1, Misroutes: 1, Availability: 0.6, Eventually: 0.8, Success: 0.8, FirstTry: 0.6,
		MedianMillis: got.MedianMillis, P99Millis: got.P99Millis, WithoutOwnerSeconds: 3, prompt: 3, firstTry: 3,
	}
	if got != want || got.MedianMillis < 1.4 || got.MedianMillis > 1.6 || got.P99Millis < 2900 || ta.sum().Republished != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestReportAsJSON: an empty list is [], and the parts of the report are flattened.
func TestReportAsJSON(t *testing.T) {
	r := Report{FaultCounts: newNemesis(nil, nil).sum(), LossCounts: newTally().sum().LossCounts}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"requests":0`, `"failoverMillis":[]`, `"recoveryMillis":[]`, `"supervised":false`, `"lossesByCause":{}`, `"movedShare":0`, `"unavailableMillis":{"keys":0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
