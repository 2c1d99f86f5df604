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

// counter runs a server on a node that has a count for each user, and moves the counts when it
// leaves. A POST increments the count, and is not idempotent.
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

// A tally is the state of one user.
type tally struct {
	name    string
	last    int           // the last count received
	unknown int           // requests since then that may have been executed
	answers int           // requests with a response
	nothing int           // requests that were not executed, by the response
	losses  int           // restarts of the count
	longest time.Duration // duration of a request
}

// count sends requests until stop is closed, and checks the counts: no request is executed
// twice, and no count is lost without a reported loss.
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
			t.Errorf("%s: no response from the gateway: %v", u.name, err)
			return
		case got.status == http.StatusOK:
			u.check(t, got.body)
		case got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != "":
			u.nothing++
		case got.status == http.StatusBadGateway:
			u.unknown++
		default:
			t.Errorf("%s: %v", u.name, got)
		}
	}
}

func (u *tally) check(t *testing.T, text string) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		t.Error(err)
	case n > u.last+1+u.unknown:
		t.Errorf("%s: %d after %d: a request was executed twice", u.name, n, u.last)
	case n <= u.last:
		if u.losses++; n > 1+u.unknown {
			t.Errorf("%s: %d after %d: the count decreased, but not to a new start", u.name, n, u.last)
		}
	}
	u.last, u.unknown = n, 0
	u.answers++
}

// counting runs a test with three servers, a gateway and users that send requests all the time,
// and returns their tallies. It checks that each restart of a count was reported as a loss.
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
				t.Errorf("%s: %d restarts of the count, and %d reported losses", u.name, u.losses, reported)
			}
			if u.answers < 50 {
				t.Errorf("%s got %d responses", u.name, u.answers)
			}
		}
	})
	return users
}

// lossesOf counts the reported losses of a name's key since an LSN.
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

// A rolling restart of all servers has no effect on users.
func TestRollingRestart(t *testing.T) {
	users := counting(t, func(t *testing.T, c *leaseholdtest.Cluster, leave map[string]func(context.Context) error) {
		for _, name := range []string{"a", "b", "c"} {
			if err := leave[name](t.Context()); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Second) // late requests are rejected
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

// The state of killed servers is lost, and every loss is reported.
func TestKilledServersLoseOnlyReportedState(t *testing.T) {
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
			t.Errorf("%s waited %v", u.name, u.longest)
		}
	}
	if lost == 0 {
		t.Error("no losses")
	}
}

// Without managers, the gateway routes by its copy of the table.
func TestGatewayWithoutManagers(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, _ *leaseholdtest.Node) {
		n := startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		n.Cut()
		c.Advance(10 * time.Minute)
		if got := do(t, base(c.Node("caller")), request(t, "GET", gateway, "")); got.body != has.Name() {
			t.Errorf("%v", got)
		}
	})
}

// The response to a request without an owner includes the absence of managers.
func TestResponseIncludesTheAbsenceOfManagers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{}) // no server
		got := do(t, base(c.Node("caller")), request(t, "GET", gateway, ""))
		if got.status != http.StatusServiceUnavailable || strings.Contains(got.body, "manager") {
			t.Errorf("%v", got)
		}
		c.KillLeader()
		got = do(t, base(c.Node("caller")), request(t, "GET", gateway, "")) // fails after about 23 s
		if got.status != http.StatusServiceUnavailable || kindOf(t, got.body) != "no-owner" || !strings.Contains(got.body, "no message from a manager for 2") {
			t.Errorf("%v", got)
		}
	})
}

// A paused server keeps its connections. An idempotent request is retried as soon as another
// server has the key.
func TestPausedServer(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		caller := base(c.Node("caller"))
		do(t, caller, request(t, "GET", gateway, "")) // opens a connection
		has.Pause()
		began := time.Now()
		got := do(t, caller, request(t, "PUT", gateway, "x"))
		if took := time.Since(began); got.body != other.Name() || took > 17*time.Second {
			t.Errorf("%v after %v", got, took)
		}
		has.Resume()
	})
}

// A request that could not connect was not executed, and waits for the next owner, whatever its
// method.
func TestUnreachableServer(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		has.Kill()
		got := do(t, base(c.Node("caller")), request(t, "POST", gateway, "x"))
		if got.body != other.Name() {
			t.Errorf("%v", got)
		}
	})
}

// A request waits for a slow server that keeps its key while other ranges move.
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
