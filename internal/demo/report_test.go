package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/witness"
)

func TestReport(t *testing.T) {
	fine := func() (counts, deeds, witness.Verdict) {
		return counts{requests: 10, firstTry: 9, prompt: 8, losses: 2, unowned: 3 * time.Second, byCause: map[leasehold.Cause]uint64{leasehold.CauseExpired: 2}},
			deeds{owners: 1, stopped: 2, leaders: 1, failovers: []time.Duration{2 * time.Second}}, witness.Verdict{Checked: 10, Tenures: 5}
	}
	for _, test := range []struct {
		name                 string
		change               func(*counts, *deeds, *witness.Verdict, *Report)
		violation, shortfall string
	}{
		{"fine", func(*counts, *deeds, *witness.Verdict, *Report) {}, "", ""},
		{"dual", func(_ *counts, _ *deeds, v *witness.Verdict, _ *Report) { v.Duals, v.First = 3, "key 7" }, "3 times two owners held a key at the same time; key 7", ""},
		{"reversal", func(_ *counts, _ *deeds, v *witness.Verdict, _ *Report) { v.Reversals = 1 }, "1 times the generation", ""},
		{"stale", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.stale = 1 }, "1 answers were older", ""},
		{"failures", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.failures = 1 }, "", "1 of 10 requests were given up"},
		{"leases", func(_ *counts, d *deeds, _ *witness.Verdict, _ *Report) { d.leasesLost = 4 }, "", "4 leases were lost"},
		{"unjudged", func(_ *counts, _ *deeds, v *witness.Verdict, _ *Report) { v.Unjudged = 1 }, "", "no room"},
		{"nobody killed", func(_ *counts, d *deeds, _ *witness.Verdict, _ *Report) { d.owners = 0 }, "", "0 owners and 1 leaders were killed"},
		{"nothing asked", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.requests = 0 }, "", "there were no requests"},
		{"nobody watched", func(_ *counts, _ *deeds, v *witness.Verdict, _ *Report) { v.Tenures = 0 }, "", "no owner said what it held"},
		{"silent", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.silent = 2 }, "2 statuses that had been acknowledged were gone, and nobody was told", ""},
		{"killed for nothing", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.losses = 0 }, "", "1 owners were killed, and nobody was told of a loss"},
		{"slow", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.prompt = 0 }, "", ""},
		{"interrupted", func(c *counts, d *deeds, _ *witness.Verdict, r *Report) {
			c.requests, d.owners, r.Interrupted = 0, 0, true
		}, "", ""},
		{"garbled", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.garbled = 1 }, "1 answers were not what the user had set", ""},
		{"lost by a restart", func(c *counts, _ *deeds, _ *witness.Verdict, _ *Report) { c.byRestart = 1 }, "", "1 ranges lost their state because owners were restarted"},
		{"rolling", func(c *counts, d *deeds, _ *witness.Verdict, r *Report) {
			*d, r.Rolling, r.Keys = deeds{restarts: 3}, true, 7
			c.lookedThrough, c.losses = 7, 0
		}, "", ""},
		{"rolling, nobody restarted", func(c *counts, d *deeds, _ *witness.Verdict, r *Report) { *d, r.Rolling = deeds{}, true }, "", "no owner was restarted"},
		{"rolling, not looked through", func(c *counts, d *deeds, _ *witness.Verdict, r *Report) {
			*d, r.Rolling, r.Keys = deeds{restarts: 3}, true, 8
			c.lookedThrough = 7
		}, "", "only 7 of 8 keys were looked through"},
		{"outage", func(c *counts, d *deeds, _ *witness.Verdict, r *Report) {
			*d, r.outage, r.Keys = deeds{outage: time.Minute, resumed: 5}, time.Minute, 7
			c.lookedThrough, c.losses = 7, 0
		}, "", ""},
		{"outage with losses", func(_ *counts, d *deeds, _ *witness.Verdict, r *Report) {
			*d, r.outage, r.ByOutage = deeds{outage: time.Minute}, time.Minute, 3
		}, "", "3 ranges lost their state because no manager ran"},
		{"no outage", func(_ *counts, d *deeds, _ *witness.Verdict, r *Report) { *d, r.outage = deeds{}, time.Minute }, "", "the managers were not killed"},
		{"failures, then interrupted", func(c *counts, _ *deeds, _ *witness.Verdict, r *Report) { c.failures, r.Interrupted = 1, true }, "", "given up"},
	} {
		c, d, v := fine()
		var r Report
		test.change(&c, &d, &v, &r)
		r.fill(c, pace{median: 1500 * time.Microsecond}, d, v)
		r.fillMoves(1, 0.5, absence{})
		is := func(got, want string) bool { return (got == "") == (want == "") && strings.Contains(got, want) }
		if !is(r.Violation(), test.violation) || !is(r.Shortfall(), test.shortfall) {
			t.Errorf("%s: violation %q, shortfall %q", test.name, r.Violation(), r.Shortfall())
		}
	}
	var kept Report
	if kept.fillMoves(1, 0.5, absence{failures: 2}); !strings.Contains(kept.Shortfall(), "2 requests of callers who kept asking") {
		t.Errorf("got %q", kept.Shortfall())
	}
	c, d, v := fine()
	c.failures = 1
	var r Report
	r.fill(c, pace{median: 1500 * time.Microsecond}, d, v)
	if r.Availability != 0.8 || r.Eventually != 0.9 || r.WithoutOwnerSeconds != 3 || r.OwnersStopped != 2 || r.FirstTry != 0.9 || r.MedianMillis != 1.5 || r.FailoverMillis[0] != 2000 || r.LossesFor["expired"] != 2 {
		t.Errorf("got %+v", r)
	}
}
