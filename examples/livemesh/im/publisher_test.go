package im_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A recorder counts requests by method and user.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent map[string]int // "PUT alice"
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.sent[request.Method+" "+strings.TrimPrefix(request.URL.Path, "/im/")]++
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// take returns the requests since the last call.
func (r *recorder) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = make(map[string]int)
	return sent
}

// publish runs a publisher on a node, until the node ends.
func publish(t *testing.T, c *leaseholdtest.Cluster, name string, refresh time.Duration) (*im.Publisher, *recorder) {
	t.Helper()
	n := c.Node(name)
	api := client(t, c, n)
	sent := &recorder{next: api.HTTP.Transport, sent: make(map[string]int)}
	api.HTTP.Transport = sent
	p := im.NewPublisher(im.PublisherConfig{Client: api, Lookup: meshtest.Lookup(t, c, n), Refresh: refresh})
	run(t, n, p)
	return p, sent
}

// run runs a publisher until its node ends.
func run(t *testing.T, n *leaseholdtest.Node, p *im.Publisher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	n.Cleanup(func(context.Context) {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func online(i int) im.Presence {
	return im.Presence{Address: fmt.Sprintf("sip:user-%d@example.com", i), Status: "online", IP: "10.0.0.1"}
}

// publishMany publishes users, and returns their presence.
func publishMany(t *testing.T, p *im.Publisher, many int) map[string]im.Presence {
	t.Helper()
	users := make(map[string]im.Presence)
	for i := range many {
		name := fmt.Sprint("user-", i)
		users[name] = online(i)
		if err := p.Publish(t.Context(), name, online(i)); err != nil {
			t.Fatal(err)
		}
	}
	return users
}

// see reads the presence of users.
func see(t *testing.T, api *im.Client, users map[string]im.Presence) map[string]im.Presence {
	t.Helper()
	seen := make(map[string]im.Presence)
	for name := range users {
		p, err := api.Get(t.Context(), name)
		if err == nil {
			seen[name] = p
		} else if !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	return seen
}

// TestLostAreRepublished: when a server was killed, its users are published again as soon as its
// lease has expired and others own its keys, without polling and without requests about other
// users (PRS 2: recovery notifications).
func TestLostAreRepublished(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			serve(t, c.Node(name))
		}
		c.Settle()
		p, sent := publish(t, c, "frontend", time.Hour)
		users := publishMany(t, p, 200)
		want := make(map[string]int)
		for name := range users {
			if has, _ := c.Owner(leasehold.KeyOf(name)); has == "b" {
				want["PUT "+name] = 1
			}
		}
		if len(want) < 20 {
			t.Fatalf("b has only %d users", len(want))
		}
		sent.take()
		c.Node("b").Kill()
		c.Advance(14 * time.Second) // the lease of 10 s times drift 1.2, and 2 s
		if diff := cmp.Diff(want, sent.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Errorf("presence (-want +got):\n%s", diff)
		}
		if got := p.Stats(); got != (im.Stats{Users: 200, Republished: len(want)}) {
			t.Errorf("%+v, want %d republished", got, len(want))
		}
	})
}

// TestMovedAreNot: no request is sent for users that were transferred with their state.
func TestMovedAreNot(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		leave := serve(t, c.Node("a"))
		serve(t, c.Node("b"))
		c.Settle()
		p, sent := publish(t, c, "frontend", time.Hour)
		users := publishMany(t, p, 50)
		sent.take()
		if err := leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Settle()
		if got := sent.take(); len(got) != 0 {
			t.Errorf("sent: %v", got)
		}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOutOfContact: a publisher whose lookup had no contact for a while publishes users again
// that were lost meanwhile, and sends nothing if none were.
func TestOutOfContact(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		p, sent := publish(t, c, "frontend", time.Hour)
		users := publishMany(t, p, 3)
		sent.take()
		c.Node("frontend").Cut("m1")
		c.Advance(time.Minute)
		c.Node("frontend").Heal()
		c.Settle()
		if got := sent.take(); len(got) > 0 || p.Stats().Republished != 0 {
			t.Errorf("requests without a loss: %v, %+v", got, p.Stats())
		}
		c.Node("frontend").Cut("m1")
		c.Node("a").Kill()
		serve(t, c.Node("b"))
		c.Advance(time.Minute)
		if got := sent.take(); len(got) > 0 {
			t.Errorf("requests without contact: %v", got)
		}
		c.Node("frontend").Heal()
		c.Settle()
		c.Advance(time.Second)
		if s := p.Stats(); s.Republished != len(users) {
			t.Errorf("%d users were lost: %+v", len(users), s)
		}
	})
}

// TestRefreshes: published users do not expire, and users that expired while the publisher was
// paused are published again.
func TestRefreshes(t *testing.T) {
	alone(t, func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client) {
		p, sent := publish(t, c, "frontend", 3*time.Minute)
		users := publishMany(t, p, 10)
		sent.take()
		c.Advance(25 * time.Minute)
		for request := range maps.Keys(sent.take()) {
			if !strings.HasPrefix(request, "PUT ") {
				t.Errorf("sent: %s", request)
			}
		}
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" || p.Stats().Republished != 0 {
			t.Errorf("%+v: %s", p.Stats(), diff)
		}
		c.Node("frontend").Pause()
		c.Advance(25 * time.Minute)
		if got := see(t, api, users); len(got) != 0 {
			t.Errorf("not expired: %v", got)
		}
		c.Node("frontend").Resume()
		c.Advance(3 * time.Minute)
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" {
			t.Error(diff)
		}
		for name := range users {
			if err := p.Withdraw(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if got := see(t, api, users); len(got) != 0 {
			t.Errorf("still present after Withdraw: %v", got)
		}
		sent.take()
		c.Advance(25 * time.Minute)
		if got := sent.take(); len(got) != 0 {
			t.Errorf("requests without users: %v", got)
		}
	})
}

// TestTakeOver: a user that another frontend publishes is dropped by the previous one, which does
// not take it back.
func TestTakeOver(t *testing.T) {
	alone(t, func(t *testing.T, c *leaseholdtest.Cluster, api *im.Client) {
		ctx := t.Context()
		first, _ := publish(t, c, "first", time.Minute)
		second, _ := publish(t, c, "second", time.Minute)
		users := publishMany(t, first, 2)
		if err := second.Publish(ctx, "user-1", online(7)); err != nil {
			t.Fatal(err)
		}
		users["user-1"] = online(7)
		c.Advance(5 * time.Minute)
		if got := first.Stats(); got.Users != 1 || got.Dropped != 1 {
			t.Errorf("the first publisher: %+v", got)
		}
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" {
			t.Error(diff)
		}
		if err := second.Publish(ctx, "user-1", im.Presence{}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a bad presence: %v", err)
		}
		c.Advance(5 * time.Minute)
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" || second.Stats().Users != 1 {
			t.Errorf("after a bad presence: %+v: %s", second.Stats(), diff)
		}
	})
}

// TestAChangeBeforeTheReport: after a change, the report of an earlier loss causes no request.
func TestAChangeBeforeTheReport(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		n, watcher := c.Node("frontend"), c.Node("watcher")
		// The publisher's lookup is partitioned; the client has a different one.
		api := client(t, c, n)
		sent := &recorder{next: api.HTTP.Transport, sent: make(map[string]int)}
		api.HTTP.Transport = sent
		p := im.NewPublisher(im.PublisherConfig{Client: api, Lookup: meshtest.Lookup(t, c, watcher)})
		users := publishMany(t, p, 1)
		watcher.Cut("m1")
		c.Node("a").Kill()
		serve(t, c.Node("a"))
		c.Settle()
		changed := users["user-0"]
		changed.Status = "away"
		users["user-0"] = changed
		if err := p.Publish(t.Context(), "user-0", changed); err != nil {
			t.Fatal(err)
		}
		sent.take()
		watcher.Heal()
		run(t, n, p)
		c.Settle()
		if got := sent.take(); len(got) > 0 {
			t.Errorf("sent after the report of the loss: %v", got)
		}
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWaitsForServers: a presence that is published without a reachable server is sent when one
// is reachable, also if the call was canceled while it waited for another one.
func TestWaitsForServers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		p, _ := publish(t, c, "frontend", time.Hour)
		if err := p.Publish(t.Context(), "alice", online(1)); err == nil {
			t.Fatal("Publish succeeded without servers")
		}
		publishing := make(chan error, 1)
		go func() { publishing <- p.Publish(t.Context(), "bob", online(2)) }()
		synctest.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Publish(over, "bob", online(3)); !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled call: %v", err)
		}
		c.Advance(10 * time.Minute) // many attempts
		serve(t, c.Node("a"))
		c.Settle()
		<-publishing
		c.Advance(time.Second)
		users := map[string]im.Presence{"alice": online(1), "bob": online(3)}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Error(diff)
		}
	})
}
