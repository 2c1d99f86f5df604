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

// A recorder notes which requests about which users are sent.
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

// take returns what was sent since it was last asked.
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
	asks := client(t, c, n)
	sent := &recorder{next: asks.HTTP.Transport, sent: make(map[string]int)}
	asks.HTTP.Transport = sent
	p, err := im.NewPublisher(im.PublisherConfig{Client: asks, Lookup: meshtest.Lookup(t, c, n), Refresh: refresh})
	if err != nil {
		t.Fatal(err)
	}
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

// publishMany publishes users, and returns what is to be seen of them.
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

// see returns what others see of users.
func see(t *testing.T, asks *im.Client, users map[string]im.Presence) map[string]im.Presence {
	t.Helper()
	seen := make(map[string]im.Presence)
	for name := range users {
		p, err := asks.Get(t.Context(), name)
		if err == nil {
			seen[name] = plain(p)
		} else if !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	return seen
}

// TestLostAreRepublished: when a server was killed, those of its users who were lost are
// there again as soon as their lease has run out and others have got it. Nobody has asked
// for them, and nothing is said of other users (PRS 2: recovery notifications).
func TestLostAreRepublished(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range []string{"a", "b", "c"} {
			serve(t, c.Node(name), im.Config{})
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
			t.Fatalf("b has %d users, which proves little", len(want))
		}
		sent.take()
		c.Node("b").Kill()
		c.Advance(14 * time.Second) // the lease of 10 s, its drift of 1.2, and a little
		if diff := cmp.Diff(want, sent.take()); diff != "" {
			t.Errorf("these should have been published again, and nothing else said:\n%s", diff)
		}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Errorf("these are not there again:\n%s", diff)
		}
		if got := p.Stats(); got != (im.Stats{Users: 200, Republished: len(want)}) {
			t.Errorf("%+v, and %d were lost", got, len(want))
		}
	})
}

// TestMovedAreNot: nothing is said of users who have moved with their state.
func TestMovedAreNot(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		leave := serve(t, c.Node("a"), im.Config{})
		serve(t, c.Node("b"), im.Config{})
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

// TestOutOfContact: a publisher whose lookup has had no contact for a while sends nothing for that, if nothing was
// lost meanwhile; and publishes again what was.
func TestOutOfContact(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), im.Config{})
		c.Settle()
		p, sent := publish(t, c, "frontend", time.Hour)
		users := publishMany(t, p, 3)
		sent.take()
		c.Node("frontend").Cut("m1")
		c.Advance(time.Minute)
		c.Node("frontend").Heal()
		c.Settle()
		if got := sent.take(); len(got) > 0 || p.Stats().Republished != 0 {
			t.Errorf("nothing was lost, and it sent %v: %+v", got, p.Stats())
		}
		c.Node("frontend").Cut("m1")
		c.Node("a").Kill()
		serve(t, c.Node("b"), im.Config{})
		c.Advance(time.Minute)
		if got := sent.take(); len(got) > 0 {
			t.Errorf("without contact it sent %v", got)
		}
		c.Node("frontend").Heal()
		c.Settle()
		c.Advance(time.Second)
		if s := p.Stats(); s.Republished != len(users) {
			t.Errorf("%d users were lost: %+v", len(users), s)
		}
	})
}

// TestRefreshes: users last while they are published, and who has expired nevertheless is
// there again.
func TestRefreshes(t *testing.T) {
	alone(t, im.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *im.Client) {
		p, sent := publish(t, c, "frontend", 3*time.Minute)
		users := publishMany(t, p, 10)
		sent.take()
		c.Advance(25 * time.Minute)
		for request := range maps.Keys(sent.take()) {
			if !strings.HasPrefix(request, "POST ") {
				t.Errorf("sent: %s", request)
			}
		}
		if diff := cmp.Diff(users, see(t, asks, users)); diff != "" {
			t.Error(diff)
		}
		c.Node("frontend").Pause()
		c.Advance(25 * time.Minute)
		if got := see(t, asks, users); len(got) != 0 {
			t.Errorf("nobody has refreshed these: %v", got)
		}
		c.Node("frontend").Resume()
		c.Advance(3 * time.Minute)
		if diff := cmp.Diff(users, see(t, asks, users)); diff != "" {
			t.Error(diff)
		}
		for name := range users {
			if err := p.Withdraw(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if got := see(t, asks, users); len(got) != 0 {
			t.Errorf("these were withdrawn: %v", got)
		}
		sent.take()
		c.Advance(25 * time.Minute)
		if got := sent.take(); len(got) != 0 {
			t.Errorf("nobody is published, and it says %v", got)
		}
	})
}

// TestTakeOver: a user who comes to another frontend is dropped by the one before, which does
// not fight.
func TestTakeOver(t *testing.T) {
	alone(t, im.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *im.Client) {
		ctx := t.Context()
		first, sent := publish(t, c, "first", time.Minute)
		second, _ := publish(t, c, "second", time.Minute)
		users := publishMany(t, first, 2)
		if err := second.Publish(ctx, "user-1", online(7)); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("published by both: %v", err)
		}
		if got := second.Stats(); got.Users != 0 {
			t.Errorf("%+v", got)
		}
		if err := second.TakeOver(ctx, "user-1", online(7)); err != nil {
			t.Fatal(err)
		}
		users["user-1"] = online(7)
		c.Advance(5 * time.Minute)
		if got := first.Stats(); got.Users != 1 || got.Dropped != 1 {
			t.Errorf("the first one: %+v", got)
		}
		away := "away"
		if err := first.Update(ctx, "user-1", im.Change{Status: &away}); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("an update of who is elsewhere: %v", err)
		}
		if err := second.Update(ctx, "user-1", im.Change{Status: &away}); err != nil {
			t.Error(err)
		}
		changed := online(7)
		changed.Status = away
		users["user-1"] = changed
		if err := second.Update(ctx, "user-1", im.Change{Status: new(string)}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a bad update: %v", err)
		}
		if err := second.TakeOver(ctx, "user-9", im.Presence{}); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a bad presence: %v", err)
		}
		if diff := cmp.Diff(users, see(t, asks, users)); diff != "" {
			t.Error(diff)
		}
		if got := sent.take(); got["PUT user-1"] != 1 {
			t.Errorf("the first one fights: %v", got)
		}
	})
}

// TestAnUpdateFindsTheLoss: an update that comes before the news of a loss publishes all of
// the user, and the news finds nothing to do.
func TestAnUpdateFindsTheLoss(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"), im.Config{})
		c.Settle()
		n := c.Node("frontend")
		// Its lookup hears of losses; the one of the client is another, and is not cut off.
		watcher := c.Node("watcher")
		p, err := im.NewPublisher(im.PublisherConfig{Client: client(t, c, n), Lookup: meshtest.Lookup(t, c, watcher)})
		if err != nil {
			t.Fatal(err)
		}
		users := publishMany(t, p, 1)
		watcher.Cut("m1")
		c.Node("a").Kill()
		serve(t, c.Node("a"), im.Config{})
		c.Settle()
		away := "away"
		if err := p.Update(t.Context(), "user-0", im.Change{Status: &away}); err != nil {
			t.Fatal(err)
		}
		want := users["user-0"]
		want.Status = away
		users["user-0"] = want
		if got := p.Stats(); got.Republished != 1 {
			t.Errorf("%+v", got)
		}
		watcher.Heal()
		run(t, n, p)
		c.Settle()
		if got := p.Stats(); got.Republished != 1 {
			t.Errorf("the news of the loss: %+v", got)
		}
		if diff := cmp.Diff(users, see(t, client(t, c, n), users)); diff != "" {
			t.Error(diff)
		}
	})
}

// What is said while no server can be reached is there when one can be.
func TestWaitsForServers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		p, _ := publish(t, c, "frontend", time.Hour)
		if err := p.Publish(t.Context(), "alice", online(1)); err == nil {
			t.Fatal("there are no servers")
		}
		c.Advance(10 * time.Minute) // many attempts
		serve(t, c.Node("a"), im.Config{})
		c.Settle()
		users := map[string]im.Presence{"alice": online(1)}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Error(diff)
		}
	})
}

// What is given up keeps its word: it is said later, or it says that it never will be.
func TestGivenUp(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		p, _ := publish(t, c, "frontend", time.Hour)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Publish(over, "alice", online(1)); err == nil || errors.Is(err, im.ErrUnsaid) {
			t.Fatalf("it was its turn, and there are no servers: %v", err)
		}
		saying := make(chan error, 1)
		go func() { saying <- p.Publish(t.Context(), "bob", online(2)) }()
		synctest.Wait()
		if err := p.Publish(over, "bob", online(3)); !errors.Is(err, im.ErrUnsaid) {
			t.Fatalf("another's turn: %v", err)
		}
		serve(t, c.Node("a"), im.Config{})
		c.Settle()
		<-saying
		c.Advance(time.Second)
		users := map[string]im.Presence{"alice": online(1), "bob": online(2)}
		if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
			t.Error(diff)
		}
	})
}
