package leasehttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
)

// counter runs a server on a node that counts for each user, and moves its counts when it
// leaves. A POST counts one more, and is not idempotent.
func counter(t *testing.T, n *leaseholdtest.Node) (leave func(context.Context) error) {
	t.Helper()
	cfg := n.MovingConfig()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	m, err := leasemap.Join(ctx, cfg, leasemap.Config[int]{})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	n.Serve(leasehttp.Middleware(m.Owner(), user)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, count := r.Header.Get("X-User"), 0
		var err error
		if r.Method == http.MethodPost {
			_, err = m.Update(r.Context(), name, func(n *int) error { *n++; count = *n; return nil })
		} else {
			count, _, err = m.Get(name)
		}
		if leasehttp.WriteError(w, err) {
			return
		}
		_, _ = fmt.Fprint(w, count)
	})))
	return m.Close
}

// A tally is what one user knows of its count.
type tally struct {
	name    string
	last    int           // what it was told
	unknown int           // requests since then that may have been carried out
	answers int           // requests that were
	nothing int           // requests that were not, and said so
	losses  int           // how often the count began anew
	longest time.Duration // that a request took
}

// count sends requests until it is stopped, and checks what it is told against what it
// knows: nothing is carried out twice, and nothing is forgotten without a loss.
func (u *tally) count(t *testing.T, client *http.Client, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(500 * time.Millisecond):
		}
		r := request(t, http.MethodPost, gateway, "")
		r.Header.Set("X-User", u.name)
		began := time.Now()
		got, err := try(client.Transport, r)
		u.longest = max(u.longest, time.Since(began))
		switch {
		case err != nil:
			t.Errorf("%s: the gateway does not answer: %v", u.name, err)
			return
		case got.status == http.StatusOK:
			u.told(t, got.body)
		case got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != "":
			u.nothing++
		case got.status == http.StatusBadGateway:
			u.unknown++
		default:
			t.Errorf("%s: %v", u.name, got)
		}
	}
}

func (u *tally) told(t *testing.T, text string) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		t.Error(err)
	case n > u.last+1+u.unknown:
		t.Errorf("%s: %d after %d: something was carried out twice", u.name, n, u.last)
	case n <= u.last:
		if u.losses++; n > 1+u.unknown {
			t.Errorf("%s: %d after %d: the count went back, and not to nothing", u.name, n, u.last)
		}
	}
	u.last, u.unknown = n, 0
	u.answers++
}

// counting runs a test with three servers, a gateway, and users that count all the time,
// and returns what each has seen. Whatever began anew was reported as lost.
func counting(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, leave map[string]func(context.Context) error)) []*tally {
	t.Helper()
	var users []*tally
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		leave := make(map[string]func(context.Context) error)
		for _, name := range []string{"a", "b", "c"} {
			leave[name] = counter(t, c.Node(name))
		}
		c.Settle()
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		client := &http.Client{Transport: base(c.Node("caller"))}
		watch := c.Node("caller").Lookup()
		before := watch.LSN()
		stop := make(chan struct{})
		var running sync.WaitGroup
		for i := range 8 {
			u := &tally{name: fmt.Sprint("user", i)}
			users = append(users, u)
			running.Go(func() { u.count(t, client, stop) })
		}
		c.Advance(10 * time.Second)
		test(t, c, leave)
		c.Advance(10 * time.Second)
		close(stop)
		running.Wait()
		for _, u := range users {
			if reported := lossesOf(t, watch, u.name, before); u.losses > reported {
				t.Errorf("%s: it began anew %d times, and %d losses were reported", u.name, u.losses, reported)
			}
			if u.answers < 50 {
				t.Errorf("%s was answered %d times", u.name, u.answers)
			}
		}
	})
	return users
}

// lossesOf counts how often the key of a name was reported as lost since an LSN.
func lossesOf(t *testing.T, watch *lookup.Lookup, name string, since leasehold.LSN) int {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	n := 0
	for loss, err := range watch.LossesSince(ctx, since) {
		if err != nil {
			break
		}
		if loss.Range.Contains(leasehold.KeyOf(name)) {
			n++
		}
	}
	return n
}

func restart(t *testing.T, c *leaseholdtest.Cluster, name string) (leave func(context.Context) error) {
	t.Helper()
	return counter(t, c.Node(name))
}

// TestRollingRestart: all servers are restarted, one after the other, and nobody who counts
// notices anything.
func TestRollingRestart(t *testing.T) {
	users := counting(t, func(t *testing.T, c *leaseholdtest.Cluster, leave map[string]func(context.Context) error) {
		for _, name := range []string{"a", "b", "c"} {
			if err := leave[name](t.Context()); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Second) // what comes late is refused
			c.Node(name).Kill()
			c.Advance(time.Second)
			restart(t, c, name)
			c.Advance(20 * time.Second)
		}
	})
	for _, u := range users {
		if u.losses != 0 || u.nothing != 0 || u.unknown != 0 || u.longest > 2*time.Second {
			t.Errorf("%+v", u)
		}
	}
}

// TestKilledServers: what they had is lost, and reported; nothing else goes wrong.
func TestKilledServers(t *testing.T) {
	users := counting(t, func(t *testing.T, c *leaseholdtest.Cluster, _ map[string]func(context.Context) error) {
		for _, name := range []string{"a", "b", "c"} {
			c.Node(name).Kill()
			c.Settle()
			restart(t, c, name)
			c.Settle()
		}
	})
	lost := 0
	for _, u := range users {
		lost += u.losses
		if u.longest > 25*time.Second {
			t.Errorf("%s waited for %v", u.name, u.longest)
		}
	}
	if lost == 0 {
		t.Error("nobody has lost anything")
	}
}

// TestManagersAway: the gateway goes on with the table that it has.
func TestManagersAway(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, _ *leaseholdtest.Node) {
		n := startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		n.Cut()
		c.Advance(10 * time.Minute)
		if got := do(t, base(c.Node("caller")), request(t, "GET", gateway, "")); got.body != has.Name() {
			t.Errorf("%v", got)
		}
	})
}

// TestManagersAwayTold: who waits in vain for an owner is told if no manager could make one.
func TestManagersAwayTold(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{}) // and no server
		got := do(t, base(c.Node("caller")), request(t, "GET", gateway, ""))
		if got.status != http.StatusServiceUnavailable || strings.Contains(got.body, "manager") {
			t.Errorf("%v", got)
		}
		c.KillLeader()
		got = do(t, base(c.Node("caller")), request(t, "GET", gateway, "")) // it gives up after 23 s or so
		if got.status != http.StatusServiceUnavailable || kindOf(t, got.body) != "no-owner" || !strings.Contains(got.body, "heard of no manager for 2") {
			t.Errorf("%v", got)
		}
	})
}

// TestPausedServer: a server that is stopped keeps its connections. Whoever may be asked
// again is answered as soon as another server has the key.
func TestPausedServer(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		caller := base(c.Node("caller"))
		do(t, caller, request(t, "GET", gateway, "")) // there is a connection
		has.Pause()
		began := time.Now()
		got := do(t, caller, request(t, "PUT", gateway, "x"))
		if took := time.Since(began); got.body != other.Name() || took > 17*time.Second {
			t.Errorf("%v after %v", got, took)
		}
		has.Resume()
	})
}

// TestDeadServer: a request that found nobody was not carried out, and waits for the next
// owner, whatever its method.
func TestDeadServer(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		has.Kill()
		got := do(t, base(c.Node("caller")), request(t, "POST", gateway, "x"))
		if got.body != other.Name() {
			t.Errorf("%v", got)
		}
	})
}

// TestSlowServer: one that takes its time and keeps its key is waited for, whatever moves
// elsewhere.
func TestSlowServer(t *testing.T) {
	slow := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute)
			_, _ = fmt.Fprint(w, name)
		})
	}
	two(t, slow, func(t *testing.T, c *leaseholdtest.Cluster, has, _ *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		began := time.Now()
		got := do(t, base(c.Node("caller")), request(t, "GET", gateway, ""))
		if took := time.Since(began); got.body != has.Name() || took > 61*time.Second {
			t.Errorf("%v after %v", got, took)
		}
	})
}
