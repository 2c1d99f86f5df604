package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
)

const second = admin.Seconds(time.Second)

// The documented consequences of presets follow from their times.
func TestPresets(t *testing.T) {
	for name, want := range map[string]struct{ lost, outage, renew admin.Seconds }{
		"default": {12 * second, 75 * second / 10, 25 * second / 10},
		"steady":  {72 * second, 55 * second, 5 * second},
		"fast":    {36 * second / 10, 25 * second / 10, second / 2},
		"paper":   {65 * second, 45 * second, 15 * second},
	} {
		n := admin.Namespace{Name: "x", MaxOwners: 7}
		if err := n.ApplyPreset(name); err != nil {
			t.Fatal(err)
		}
		lost := admin.Seconds(time.Duration(n.Drift * float64(n.Lease)).Round(time.Microsecond))
		if lost != want.lost || n.Outage() != want.outage || n.Renew != want.renew || n.MaxOwners != 7 {
			t.Errorf("%s: %+v; a lost host costs %v, and outages of %v are not noticed", name, n, lost, n.Outage())
		}
	}
	var n admin.Namespace
	if err := n.ApplyPreset("quick"); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), `"quick": want one of default, steady, fast, paper`) {
		t.Errorf("%v", err)
	}
}

// A lease without its last renewal must outlive a failover.
func TestLeaseWarning(t *testing.T) {
	usual := admin.Status{TTL: 2 * second, Failover: 2733 * second / 1000}
	for _, test := range []struct {
		lease, renew   admin.Seconds
		status         admin.Status
		wrong, choices string
	}{
		{10 * second, 25 * second / 10, usual, "", ""},
		{37 * second / 10, 925 * second / 1000, usual, "", ""},
		{36 * second / 10, 900 * second / 1000, usual, "leases of 3.6s, renewed every 900ms, outlive 2.7s", "Choose --lease 3.7s or more, or start all managers with --ttl 1.8s or less."},
		{3 * second, second / 2, usual, "a failover takes up to 2.73s, and leases of 3s", "--ttl 1.6s or less."},
		{8 * second, 4 * second, admin.Status{TTL: 3 * second, Failover: 41 * second / 10}, "outlive 4s", "Choose --renew 3.9s or less, or start all managers with --ttl 2.6s or less."},
		{second / 10, second / 20, usual, "outlive 50ms", "Choose --lease 3.7s or more."},
		{second / 10, second / 20, admin.Status{}, "", ""},
	} {
		problem, advice := test.status.LeaseWarning(admin.Namespace{Name: "x", Lease: test.lease, Renew: test.renew})
		if (problem == "") != (test.wrong == "") || !strings.Contains(problem, test.wrong) || !strings.HasSuffix(advice, test.choices) {
			t.Errorf("%v: %q, %q", time.Duration(test.lease), problem, advice)
		}
	}
}
