package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// is reports whether a line is an event of a kind with one lease.
func is(line map[string]any, what string) bool {
	leases, _ := line["leases"].([]any)
	return line["type"] == what && len(leases) == 1
}

// TestOutage: while no manager runs, a program receives the event that its leases are suspended,
// and not that they have ended. A stream that starts during the outage begins with the suspended
// leases.
func TestOutage(t *testing.T) {
	one(t, object{"ttl_ms": 60000}, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		var before, now checkAnswer
		p.must("POST", p.path("/check"), object{"name": "alice"}, &before)
		events := p.lines(t.Context(), p.path("/events"))
		if e := <-events; !is(e, "leases") || e["suspended"] != nil {
			t.Errorf("at first: %v", e)
		}
		c.KillManager("m1")
		c.Advance(20 * time.Second)
		p.must("POST", p.path("/check"), object{"name": "alice"}, &now)
		if now.Held || !now.Suspended || now.ValidForMS != 0 {
			t.Errorf("check in the outage: %+v", now)
		}
		var held heldAnswer
		p.must("POST", p.path("/held"), object{"name": "alice", "generation": fmt.Sprint(uint64(before.Lease.Generation))}, &held)
		if held.Held || !held.Suspended {
			t.Errorf("held in the outage: %+v", held)
		}
		var leases leasesAnswer
		p.must("POST", p.path("/leases"), object{}, &leases)
		if len(leases.Leases) > 0 || !leases.Suspended {
			t.Errorf("leases in the outage: %+v", leases)
		}
		var status statusDocument
		p.must("GET", "/v1/status", nil, &status)
		if status.Owners[0].Leases != 0 || status.Owners[0].Suspended != 1 {
			t.Errorf("status in the outage: %+v", status.Owners)
		}
		if e := <-events; !is(e, "suspended") {
			t.Errorf("in the outage: %v", e)
		}
		late := p.lines(t.Context(), p.path("/events"))
		if e := <-late; !is(e, "leases") || e["suspended"] != true {
			t.Errorf("first event of a stream that starts in the outage: %v", e)
		}

		c.StartManager("m1")
		var awaited awaitAnswer
		p.must("POST", p.path("/await"), object{"name": "alice", "timeout_ms": 10000}, &awaited)
		now = checkAnswer{}
		p.must("POST", p.path("/check"), object{"name": "alice"}, &now)
		if !awaited.Held || !now.Held || now.Suspended || *now.Lease != *before.Lease {
			t.Errorf("after the outage: %+v, %+v; before: %+v", awaited, now, before)
		}
		if e := <-events; !is(e, "resumed") {
			t.Errorf("after the outage: %v", e)
		}
	})
}
