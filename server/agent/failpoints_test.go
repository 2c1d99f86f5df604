//go:build failpoints

package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestEveryPoint: when an agent dies or pauses at any failpoint, its program uses no lease that
// another owner holds, and every key has an owner again in time.
func TestEveryPoint(t *testing.T) {
	for _, point := range failpoint.Names() {
		if !strings.HasPrefix(point, "agent/") {
			continue
		}
		for fate, pause := range map[string]time.Duration{"kill": 0, "pause": 300 * time.Millisecond, "pause for long": 15 * time.Second} {
			t.Run(point+"/"+fate, func(t *testing.T) {
				t.Cleanup(failpoint.Reset)
				leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
					stumble(t, c, point, pause)
				})
			})
		}
	}
}

// stumble runs a server that uses the library, b, and a server that uses an agent, a.
func stumble(t *testing.T, c *leaseholdtest.Cluster, point string, pause time.Duration) {
	b := c.Node("b").Join(owner.Config{})
	startAgent(t, c, "a")
	p := newProgram(t, c, "a")
	p.join(c, nil)
	// The last confirmed leases of the program. Their validity counts from the request.
	var known view
	views := make(chan view, 1000)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer close(views)
		for ctx.Err() == nil {
			if one, err := p.ask(); err == nil {
				views <- one
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	c.Settle()

	met, resume := make(chan struct{}, 1), make(chan struct{})
	failpoint.Once(point, func() {
		time.Sleep(pause)
		met <- struct{}{}
		if pause == 0 {
			<-resume
		}
	})
	go provoke(c, p, point)
	look := func() (without int) {
		for {
			select {
			case latest, open := <-views:
				if open {
					known = latest
					continue
				}
			default:
			}
			break
		}
		for i := range 64 {
			key := leasehold.Key(i)<<58 + 12345
			_, library := b.Check(key)
			switch program := known.owns(key); {
			case library && program:
				t.Fatalf("%v has two owners", key)
			case !library && !program:
				without++
			}
		}
		return without
	}
	wait := func(most time.Duration, what string, so func() bool) {
		t.Helper()
		for begun := time.Now(); !so(); c.Advance(5 * time.Millisecond) {
			if look(); time.Since(begun) > most {
				t.Fatalf("after %v: %s", most, what)
			}
		}
	}
	wait(time.Minute, "the failpoint is not reached", func() bool { return len(met) > 0 })
	if pause == 0 {
		time.AfterFunc(1, func() { close(resume) })
		stop()
		c.Node("a").Kill()
	}
	wait(14400*time.Millisecond+time.Second, fmt.Sprintf("%d of 64 keys have no owner", look()), func() bool { return look() == 0 })
	stop()
	for range views { // until the program has ended
	}
}

// provoke sends the agent a request that reaches a failpoint. There may be no response.
func provoke(c *leaseholdtest.Cluster, p *program, point string) {
	switch point {
	case "agent/joined-before-answer":
		another := object{"namespace": string(c.Namespace()), "addr": "a:81", "name": "another", "ttl_ms": 1000}
		_, _ = p.call("POST", "/v1/owners", another, new(joinAnswer))
	case "agent/before-line":
		if r, err := p.http.Get(p.base + p.path("/events")); err == nil {
			_ = r.Body.Close()
		}
	case "agent/before-closing", "agent/left-before-answer":
		_, _ = p.call("DELETE", p.path(""), nil, new(struct{}))
	}
}
