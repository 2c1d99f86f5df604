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

// Whenever an agent dies or stands still, its program relies on no lease that another has,
// and every key has a server again in time.
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

// stumble has one server that uses the library, b, and one that uses an agent, a.
func stumble(t *testing.T, c *leaseholdtest.Cluster, point string, pause time.Duration) {
	b := c.Node("b").Join(owner.Config{})
	startAgent(t, c, "a")
	p := newProgram(t, c, "a")
	p.join(c, nil)
	// What the program believes, and until when. It counts from when it asks.
	var known belief
	asked := make(chan belief, 1000)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer close(asked)
		for ctx.Err() == nil {
			if one, err := p.ask(); err == nil {
				asked <- one
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
			case bel, open := <-asked:
				if open {
					known = bel
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
				t.Fatalf("%v has two servers", key)
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
	wait(time.Minute, "the point is not passed", func() bool { return len(met) > 0 })
	if pause == 0 {
		time.AfterFunc(1, func() { close(resume) })
		stop()
		c.Node("a").Kill()
	}
	wait(14400*time.Millisecond+time.Second, fmt.Sprintf("%d of 64 keys have no server", look()), func() bool { return look() == 0 })
	stop()
	for range asked { // until the program has ended
	}
}

// provoke asks the agent for what passes a point. No answer may ever come.
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
