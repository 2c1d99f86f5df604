package managerconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// records is a resolver with the SRV records of one name.
type records struct {
	mu    sync.Mutex
	hosts []string // none: an error
}

func (r *records) set(hosts ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts = hosts
}

func (r *records) LookupHost(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (r *records) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hosts) == 0 {
		return "", nil, errors.New("no DNS server replies")
	}
	var out []*net.SRV
	for _, host := range r.hosts {
		out = append(out, &net.SRV{Target: host, Port: 1})
	}
	return "", out, nil
}

// The first message for all managers waits for their addresses. Later ones are sent to the current
// managers.
func TestManagersByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "srv:///_leasehold._tcp.test"
		a, b := &manager{addr: "a:1"}, &manager{addr: "b:1"}
		dns := &records{}
		c := newNetwork(t, a, b).client(Config[request, response]{
			Managers: []string{name}, Resolver: dns,
		})
		c.Send("", message(1))
		c.Send("", message(2))
		synctest.Wait()
		if n, _ := c.lastDown(name); n != 0 || c.unresolved[name] == nil {
			t.Errorf("%d broken streams to the name, which was not resolved because of %v", n, c.unresolved[name])
		}
		dns.set("a")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if received, _, _ := a.state(); !slices.Equal(received, []uint64{2}) {
			t.Errorf("a received %v, want the newest message", received)
		}
		dns.set("b")
		a.server.Stop() // a broken connection is a reason to resolve again
		time.Sleep(5 * time.Second)
		synctest.Wait()
		c.Send("", message(3))
		synctest.Wait()
		if received, _, _ := b.state(); !slices.Equal(received, []uint64{3}) || !slices.Equal(c.Managers(), []string{"b:1"}) {
			t.Errorf("b received %v, the managers are %v", received, c.Managers())
		}
	})
}

// A client that knows the changes sends the first message itself: not all managers get it.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, dns := &manager{addr: "a:1"}, &manager{addr: "b:1"}, &records{}
		var c *client
		var changes [][]string
		c = newNetwork(t, a, b).client(Config[request, response]{
			Managers: []string{"srv:///_leasehold._tcp.test"}, Resolver: dns, Changed: func(addrs []string) {
				changes = append(changes, addrs)
				if !c.Resolved() || !slices.Equal(c.Managers(), addrs) {
					t.Errorf("resolved: %v, to %v; want %v", c.Resolved(), c.Managers(), addrs)
				}
				c.Send(addrs[0], message(2))
			},
		})
		c.Send("", message(1))
		synctest.Wait()
		if c.Resolved() {
			t.Error("the list is complete although its name is not resolved")
		}
		dns.set("a", "b")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		toA, _, _ := a.state()
		toB, _, _ := b.state()
		if !slices.Equal(toA, []uint64{2}) || len(toB) > 0 || len(changes) != 1 {
			t.Errorf("a received %v, b received %v, %d changes", toA, toB, len(changes))
		}
	})
}

func TestInvalidManagers(t *testing.T) {
	if _, err := New(Config[request, response]{Managers: []string{"xds:///m"}}); err == nil {
		t.Error("an unknown scheme is accepted")
	}
}
