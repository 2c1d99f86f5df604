//go:build failpoints

package manager_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// end crashes a manager while it is paused at a failpoint until resume is called.
func (c *cluster) end(name string, resume func()) {
	m := c.managers[name]
	if m == nil {
		return
	}
	c.peers.cut(name)
	go func() {
		time.Sleep(time.Nanosecond) // after all connections are closed
		resume()
	}()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Close(ended)
	c.forget(name)
}

// on runs start with the manager's name as goroutine label.
func on(name string, start func()) {
	pprof.Do(context.Background(), pprof.Labels("node", name), func(context.Context) { start() })
}

// overlap returns a key that both owners hold, if there is one.
func overlap(a, b *owner.Owner) (leasehold.Key, bool) {
	for i := range 64 {
		key := leasehold.Key(i)<<58 + 12345
		_, one := a.Check(key)
		if _, two := b.Check(key); one && two {
			return key, true
		}
	}
	return 0, false
}

// At every failpoint a manager of a diskless group is killed or paused: no key ever has two owners, and every key has
// an owner again in time.
func TestEveryPointWithoutDisk(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // see failpoint.Who
	for _, point := range failpoint.Names() {
		if !strings.HasPrefix(point, "memcatalog/") {
			continue
		}
		for fate, pause := range map[string]time.Duration{"kill": 0, "pause": 300 * time.Millisecond, "pause for long": 15 * time.Second} {
			t.Run(point+"/"+fate, func(t *testing.T) {
				t.Cleanup(failpoint.Reset)
				inBubble(t, func(t *testing.T, c *cluster) { withoutDiskAt(t, c, point, pause) })
			})
		}
	}
}

func withoutDiskAt(t *testing.T, c *cluster, point string, pause time.Duration) {
	c.peers = &peers{members: []string{"m1", "m2", "m3"}}
	for _, name := range c.peers.members {
		on(name, func() { c.start(name) })
	}
	leader := c.leads(30 * time.Second)
	c.create(leader, pool())
	a, b := c.join("a"), c.join("b")
	has := func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 }
	eventually(t, 30*time.Second, "all keys are owned", has)

	met, resume := make(chan string, 1), make(chan struct{})
	failpoint.Once(point, func() {
		if pause > 0 {
			time.Sleep(pause)
			met <- ""
			return
		}
		met <- failpoint.Who()
		<-resume
	})
	asked := make(chan struct{})
	go func() { // change the namespaces, with any outcome
		defer close(asked)
		if point == "memcatalog/catalog-confirmed" {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _ = c.admin(leader).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
				Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: "another"},
			})
		}
	}()
	defer func() { <-asked }()
	synctest.Wait()
	c.peers.cut(leader) // so that another takes over
	victim := ""
	eventually(t, time.Minute, "the point is passed", func() bool {
		if key, two := overlap(a, b); two {
			t.Fatalf("%v has two owners", key)
		}
		select {
		case victim = <-met:
			return true
		default:
			return false
		}
	})
	if pause == 0 && victim == "" {
		t.Fatal("the manager that passed the point is unknown")
	}
	if pause == 0 {
		c.end(victim, func() { close(resume) })
		c.peers.mend(victim)
		on(victim, func() { c.start(victim) })
	}
	c.peers.mend(leader)
	began := time.Now()
	c.leads(time.Minute)
	eventually(t, time.Minute, "all keys are owned again", func() bool {
		if key, two := overlap(a, b); two {
			t.Fatalf("%v has two owners", key)
		}
		return has()
	})
	// B, and the time for which a started manager does not take part.
	if took := time.Since(began); took > 18*time.Second {
		t.Errorf("every key has an owner again after %v", took)
	}
}
