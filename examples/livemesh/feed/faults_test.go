package feed_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A tally counts requests in all runs.
type tally struct {
	reads, posts atomic.Int64
	without      atomic.Int64 // of both, those served without a lease
	empty        atomic.Int64 // reads of an empty feed
}

// counted counts the responses of a server.
type counted struct {
	*feed.Service
	tally *tally
}

func (s counted) Handler() http.Handler {
	next := s.Service.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		user := strings.Split(r.URL.Path, "/")[2]
		if _, ok := s.Owner().Check(leasehold.KeyOf(user)); !ok && answer.Code == http.StatusOK {
			s.tally.without.Add(1)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// TestAlwaysServed: while servers are killed, paused, partitioned, drained and restarted, every
// read and post succeeds within the timeout of its transport, and every response is a feed. Some
// are from servers without a lease.
func TestAlwaysServed(t *testing.T) {
	runs := meshtest.Runs(10)
	var total tally
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				runWithFaults(t, c, seed, &total)
			})
		})
	}
	t.Logf("%d runs: %d reads, %d of them of an empty feed, and %d posts; %d answers without a lease",
		runs, total.reads.Load(), total.empty.Load(), total.posts.Load(), total.without.Load())
	if total.without.Load() == 0 || total.posts.Load() < int64(100*runs) {
		t.Error("too few requests for a valid test")
	}
}

func runWithFaults(t *testing.T, c *leaseholdtest.Cluster, seed uint64, total *tally) {
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start: func(n *leaseholdtest.Node) func(context.Context) error {
			s, err := feed.Join(t.Context(), n.MovingConfig(), feed.Config{})
			return meshtest.Serve(t, n, counted{s, total}, err)
		},
	}
	e.Begin(c, "a", "b", "c")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var people errgroup.Group
	for i := range 4 {
		user := fmt.Sprint("user-", i)
		p := &person{user, client(t, c, c.Node("poster-"+user)), rand.New(rand.NewPCG(seed, uint64(i))), total}
		people.Go(func() error { return p.post(ctx) })
		r := &person{user, client(t, c, c.Node("reader-"+user)), rand.New(rand.NewPCG(seed, uint64(10+i))), total}
		people.Go(func() error { return r.read(ctx) })
	}
	for range 3 {
		c.Advance(3 * time.Second)
		t.Log(e.Strike())
	}
	stop()
	if err := people.Wait(); err != nil {
		t.Error(err)
	}
}

// A person posts to a feed, or reads it.
type person struct {
	user   string
	api    *feed.Client
	random *rand.Rand
	total  *tally
}

// rest waits until the next request, and returns false if the context has ended.
func (p *person) rest(ctx context.Context) bool {
	select {
	case <-time.After(time.Duration(p.random.IntN(2000)) * time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// post posts feeds and events.
func (p *person) post(ctx context.Context) error {
	sending := context.WithoutCancel(ctx) // requests in progress are completed
	for i := 0; p.rest(ctx); i++ {
		var err error
		if p.random.IntN(2) == 0 {
			err = p.api.Add(sending, p.user, rss(fmt.Sprint("Alice wrote ", i), fmt.Sprint("Bob <![CDATA[<b>read</b>]]> ", i)))
		} else {
			err = p.api.Report(sending, p.user, feed.Event{Text: fmt.Sprint("is on page ", i)})
		}
		if err != nil {
			return fmt.Errorf("a post was not served: %w", err)
		}
		p.total.posts.Add(1)
	}
	return nil
}

// read reads feeds.
func (p *person) read(ctx context.Context) error {
	for p.rest(ctx) {
		got, err := p.api.Get(context.WithoutCancel(ctx), p.user)
		if err != nil || got.Title != "Activities for "+p.user {
			return fmt.Errorf("a read was not served: %w", err)
		}
		p.total.reads.Add(1)
		if len(got.Items) == 0 {
			p.total.empty.Add(1)
		}
	}
	return nil
}
