package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// one runs a test with one agent and one joined program that owns all keys.
func one(t *testing.T, with object, test func(t *testing.T, c *leaseholdtest.Cluster, p *program)) {
	t.Helper()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a")
		p := newProgram(t, c, "a")
		p.join(c, with)
		var awaited awaitAnswer
		p.must("POST", p.path("/await"), object{"name": "alice", "timeout_ms": 5000}, &awaited)
		if !awaited.Held {
			t.Fatal("the only owner does not get the key")
		}
		test(t, c, p)
	})
}

func TestProgramLifecycle(t *testing.T) {
	one(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		key := leasehold.KeyOf("alice")
		var byName, byKey checkAnswer
		p.must("POST", p.path("/check"), object{"name": "alice"}, &byName)
		p.must("POST", p.path("/check"), object{"key": key.String()}, &byKey)
		if !byName.Held || byName.Key != admin.Point(key) || *byName.Lease != *byKey.Lease || byName.ValidForMS != 833 {
			t.Errorf("check: %+v, %+v", byName, byKey)
		}
		var held heldAnswer
		p.must("POST", p.path("/held"), object{"name": "alice", "generation": fmt.Sprint(uint64(byName.Lease.Generation))}, &held)
		if !held.Held || held.ValidForMS != 833 {
			t.Errorf("held: %+v", held)
		}
		p.must("POST", p.path("/held"), object{"name": "alice", "generation": "999999999"}, &held)
		if held.Held || held.ValidForMS != 0 {
			t.Errorf("an unknown lease is held: %+v", held)
		}
		b, err := p.ask()
		if err != nil || !b.owns(key) || len(b.leases) == 0 {
			t.Errorf("leases: %+v, %v", b, err)
		}
		var found findAnswer
		p.must("GET", "/v1/namespaces/test/find?name=alice&refresh=true", nil, &found)
		if found.Addr != "a:8080" || found.Owner != "a" || found.Generation != byName.Lease.Generation || !found.Ready {
			t.Errorf("found %+v", found)
		}
		var status statusDocument
		p.must("GET", "/v1/status", nil, &status)
		if len(status.Owners) != 1 || status.Owners[0].Leases == 0 || len(status.Lookups) != 1 || status.MaxPromiseMS != 1000 {
			t.Errorf("status: %+v", status)
		}

		var nothing struct{}
		p.must("DELETE", p.path(""), nil, &nothing)
		if _, err := p.call("POST", p.path("/check"), object{"name": "alice"}, &byName); err == nil || !strings.HasPrefix(err.Error(), "not_found: ") {
			t.Errorf("check after leaving: %v", err)
		}
		c.Advance(time.Second)
		status2, err := p.call("GET", "/v1/namespaces/test/find?name=alice", nil, &found)
		if status2 != http.StatusServiceUnavailable || !strings.HasPrefix(err.Error(), "no_owner: ") {
			t.Errorf("find without an owner: %d, %v", status2, err)
		}
	})
}

// justSilent is the time after a response at which a program with a TTL of 2 s expires: its next
// request then arrives between the expiry and the end of the teardown, which takes a round trip
// of 2 ms.
const justSilent = 2*time.Second - time.Millisecond

// A program that is silent for longer than its TTL expires. One that sends requests does not.
func TestIdleProgramExpires(t *testing.T) {
	one(t, object{"ttl_ms": 2000}, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		for range 20 {
			c.Advance(1900 * time.Millisecond)
			if _, err := p.ask(); err != nil {
				t.Fatalf("request of an active program: %v", err)
			}
		}
		c.Advance(justSilent)
		if status, err := p.call("POST", p.path("/leases"), object{}, new(leasesAnswer)); status != http.StatusGone {
			t.Errorf("request of an expired program: %d, %v", status, err)
		}
		c.Advance(2 * time.Second) // the promise, and a round trip
		if status, _ := p.call("POST", p.path("/leases"), object{}, new(leasesAnswer)); status != http.StatusNotFound {
			t.Errorf("request after the teardown: %d", status)
		}
		if node, ok := c.Owner(0); ok {
			t.Errorf("%s still has keys", node)
		}
	})
}

// Leaving succeeds if the session is already ending.
func TestLeaveLate(t *testing.T) {
	one(t, object{"ttl_ms": 2000}, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		if _, err := p.ask(); err != nil {
			t.Fatal(err)
		}
		c.Advance(justSilent) // it starts to end; as in TestIdleProgramExpires, other programs receive the event
		p.must("DELETE", p.path(""), nil, new(struct{}))
		if node, ok := c.Owner(0); ok {
			t.Errorf("it was answered, and %s still has keys", node)
		}
	})
}

// A program with two streams stays joined while one of them is open.
func TestOneOfTwoStreamsBreaks(t *testing.T) {
	one(t, object{"ttl_ms": 60000}, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		stays := p.lines(t.Context(), p.path("/events"))
		<-stays
		ctx, cancel := context.WithCancel(t.Context())
		breaks := p.lines(ctx, p.path("/events"))
		<-breaks
		cancel()
		for range breaks {
		}
		c.Advance(5 * brokenTTL)
		if _, err := p.ask(); err != nil {
			t.Errorf("one of two streams broke: %v", err)
		}
		p.must("DELETE", p.path(""), nil, new(struct{}))
		for range stays {
		}
	})
}

// A program that dies breaks its stream, which shortens its TTL, unless it sends a
// request.
func TestBrokenStream(t *testing.T) {
	one(t, object{"ttl_ms": 60000}, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		for _, active := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			lines := p.lines(ctx, p.path("/events"))
			if first := <-lines; first["type"] != "leases" || len(first["leases"].([]any)) == 0 {
				t.Errorf("the first line is %v", first)
			}
			cancel()
			for range lines {
			}
			c.Advance(brokenTTL / 2)
			if active {
				if _, err := p.ask(); err != nil {
					t.Error(err)
				}
			}
			c.Advance(5 * time.Second)
			status, _ := p.call("POST", p.path("/leases"), object{}, new(leasesAnswer))
			if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[active]; status != want {
				t.Errorf("after the stream broke, with requests %t: status %d, want %d", active, status, want)
			}
		}
	})
}

// Events report grants, ends with their causes, and the close of the session.
func TestEvents(t *testing.T) {
	one(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		lines := p.lines(t.Context(), p.path("/events"))
		<-lines
		startAgent(t, c, "b")
		other := newProgram(t, c, "b")
		other.join(c, object{"ttl_ms": 60000})
		line := <-lines
		if line["type"] != "revoked" || line["cause"] != "released" || len(line["leases"].([]any)) == 0 {
			t.Errorf("when another joins: %v", line)
		}
		var nothing struct{}
		p.must("DELETE", p.path(""), nil, &nothing)
		var last map[string]any
		for line := range lines {
			last = line
		}
		if last["type"] != "closed" || last["why"] != "the program leaves" {
			t.Errorf("the last line is %v", last)
		}
	})
}

// Losses are sent as they happen, and again after a resume.
func TestLosses(t *testing.T) {
	one(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, p *program) {
		startAgent(t, c, "b")
		other := newProgram(t, c, "b")
		ctx, cancel := context.WithCancel(t.Context())
		lines := other.lines(ctx, "/v1/namespaces/test/losses")
		begin := <-lines
		if begin["type"] != "begin" || begin["lsn"] == nil {
			t.Errorf("the first line is %v", begin)
		}
		c.Node("a").Kill()
		c.Node("c").Join(owner.Config{}) // without another owner the leases would be suspended
		loss := <-lines
		if loss["type"] != "loss" || loss["owner"] != "a" || loss["cause"] != "expired" {
			t.Errorf("a dead owner: %v", loss)
		}
		cancel()
		for range lines {
		}
		ctx, cancel = context.WithCancel(t.Context())
		lines = other.lines(ctx, fmt.Sprintf("/v1/namespaces/test/losses?since=%v", begin["lsn"]))
		<-lines
		if again := <-lines; again["lsn"] != loss["lsn"] || again["start"] != loss["start"] {
			t.Errorf("resumed: %v, before: %v", again, loss)
		}
		cancel()
		for range lines {
		}
	})
}

// A loss of contact is a separate event, and no loss is reported because of it. Losses in the meantime are sent
// before the line for the restored contact.
func TestLossesWithoutContact(t *testing.T) {
	one(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, _ *program) {
		startAgent(t, c, "b")
		other := newProgram(t, c, "b")
		ctx, cancel := context.WithCancel(t.Context())
		lines := other.lines(ctx, "/v1/namespaces/test/losses")
		next := func() map[string]any {
			for line := range lines {
				if line["type"] != "alive" {
					return line
				}
			}
			return nil
		}
		next() // begin
		c.Node("b").Cut()
		if line := next(); line["type"] != "contact" || line["lost"] != true || line["age_ms"].(float64) < 30_000 {
			t.Errorf("without contact: %v", line)
		}
		c.Node("a").Kill()
		c.Advance(time.Minute)
		c.Node("b").Heal()
		if line := next(); line["type"] != "loss" || line["owner"] != "a" {
			t.Errorf("loss during the outage: %v", line)
		}
		if line := next(); line["type"] != "contact" || line["lost"] != false || line["age_ms"].(float64) < 60_000 {
			t.Errorf("with contact: %v", line)
		}
		cancel()
		for range lines {
		}
	})
}

func TestReport(t *testing.T) {
	one(t, object{"load": "reported"}, func(t *testing.T, _ *leaseholdtest.Cluster, p *program) {
		var heard reportAnswer
		p.must("POST", p.path("/report"), object{"costs": []object{{"name": "alice", "cost": 12.5}, {"key": "00000000000000ff", "cost": 1}}}, &heard)
		if heard.Reported != 2 {
			t.Errorf("reported %d", heard.Reported)
		}
	})
}

// A stopping agent releases all leases, and sends events of it.
func TestStop(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a := startAgent(t, c, "a")
		p := newProgram(t, c, "a")
		p.join(c, nil)
		c.Advance(time.Second)
		b, err := p.ask()
		if err != nil || !b.owns(0) {
			t.Fatal(b, err)
		}
		lines := p.lines(t.Context(), p.path("/events"))
		losses := p.lines(t.Context(), "/v1/namespaces/test/losses")
		began := time.Now()
		a.Close(t.Context())
		if took := time.Since(began); took < 833*time.Millisecond || took > 2*time.Second {
			t.Errorf("it stopped after %v, before the promise of a second ended", took)
		}
		var last map[string]any
		for line := range lines {
			last = line
		}
		if last["why"] != "the agent stops" {
			t.Errorf("the last line is %v", last)
		}
		for range losses {
		}
		if _, ok := c.Owner(0); ok {
			t.Error("its leases are not released")
		}
		for _, path := range []string{"/v1/owners", "/v1/namespaces/test/find?name=x"} {
			method, body := "GET", object(nil)
			if path == "/v1/owners" {
				method, body = "POST", object{"namespace": "test", "addr": "a:1"}
			}
			var in any = body
			if body == nil {
				in = nil
			}
			if status, err := p.call(method, path, in, new(struct{})); status != http.StatusGone {
				t.Errorf("%s: %d, %v", path, status, err)
			}
		}
	})
}
