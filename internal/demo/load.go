package demo

import (
	"context"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A load is the callers: users of the presence service who find its servers
// through the lookup library.
//
// Requests are due at times that depend on nothing: not on how long earlier ones
// take, nor on whose servers are there. Whose turn it is is drawn first. If that
// user has a request under way the new one waits, and its latency counts from
// when it was due.
type load struct {
	rate  int
	users users
	// valueSize is how long a status is, and byRestart says of a loss whether a
	// restart is to blame for it.
	valueSize int
	byRestart func(leasehold.Loss) bool

	lookup table
	client *http.Client
	tally  *tally
	queues *queues
	gone   *suspicions
	rand   *rand.Rand
	// attempts is how often a request is tried: for as long as an owner that was
	// killed stays away, and then some.
	attempts int
	lost     chan *user // who is to set their status again

	waiting atomic.Int64   // requests that are due and have not ended; maxWaiting at most
	running sync.WaitGroup // one goroutine for each user at most
}

// table is what callers ask of the lookup library.
type table interface {
	Find(key leasehold.Key) (addr string, ok bool)
	Do(ctx context.Context, key leasehold.Key, f func(ctx context.Context, addr string) error, options ...lookup.DoOption) error
	Losses(ctx context.Context) iter.Seq[leasehold.Loss]
	Close() error
}

const lookupPatience = 20 * time.Second

// openLoad lets users find the servers of a cluster.
func openLoad(ctx context.Context, c *cluster) (*load, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	t, err := lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: c.addrs, Credentials: c.certificates.finding()})
	if err != nil {
		return nil, err
	}
	dial := c.certificates.dialer()
	l := newLoad(&c.cfg, t, &http.Transport{
		DialContext:     func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
		MaxConnsPerHost: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
	})
	l.byRestart = c.byRestart
	return l, nil
}

func newLoad(cfg *Config, t table, servers http.RoundTripper) *load {
	return &load{
		rate: cfg.Rate, valueSize: cfg.ValueSize, byRestart: func(leasehold.Loss) bool { return false }, users: newUsers(cfg.Users), lookup: t, tally: newTally(), queues: newQueues(), gone: newSuspicions(),
		client: &http.Client{Transport: servers},
		rand:   rand.New(rand.NewPCG(cfg.Seed, 2)), attempts: attemptsFor(cfg.Lease + cfg.Outage),
		lost: make(chan *user, cfg.Users),
	}
}

// attemptsFor is enough attempts for three leases, at the half second at least
// that is between two of them once the first few have failed.
func attemptsFor(lease time.Duration) int { return 20 + int(3*lease/(500*time.Millisecond)) }

// beat is how often requests become due; as many at a time as the rate wants.
const beat = 10 * time.Millisecond

// lastRequests is how long requests may take that are under way at the end, when
// every key has an owner again.
const lastRequests = 15 * time.Second

// maxWaiting bounds the requests that wait. Those for which there is no room
// have failed.
const maxWaiting = 1 << 18

// run lets requests become due at the rate until sending ends, and returns when
// all have been answered or given up, and it is known what became of answers
// that had forgotten something. Before that it does what is to be done at the
// end. Requests that are under way when the whole ends are dropped and do not
// count.
func (l *load) run(sending, whole context.Context, last func(context.Context) error) error {
	hearing, deaf := context.WithCancel(whole)
	var listener sync.WaitGroup
	listener.Go(func() { l.hearLosses(hearing) })
	defer listener.Wait()
	defer deaf()
	requests, cancel := context.WithCancel(whole)
	defer cancel()
	l.send(sending, requests, whole)
	patient := time.AfterFunc(lastRequests, cancel)
	defer patient.Stop()
	l.running.Wait()
	err := last(whole)
	for l.gone.open(time.Now()) > 0 && pause(whole, poll) {
	}
	return err
}

// send makes requests until sending ends. One that could not be sent at its beat,
// because we were not running, is sent later and counts from its beat.
func (l *load) send(sending, requests, whole context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	sent, begin := 0, time.Now()
	for at := begin; ; {
		select {
		case <-sending.Done():
			return
		case <-ticker.C:
		}
		for ; time.Since(at) >= 0 && sending.Err() == nil; at = at.Add(beat) {
			due := int(at.Sub(begin).Seconds() * float64(l.rate))
			for ; sent < due; sent++ {
				l.enqueue(requests, whole, &l.users[l.rand.IntN(len(l.users))], drawDue(at, l.rand))
			}
			l.republish(requests, whole)
		}
	}
}

// republish has users who lost their status make a request now, besides those
// that are due, and at their rate: a loss may hit all users at once.
func (l *load) republish(requests, whole context.Context) {
	for range 1 + int(beat.Seconds()*float64(l.rate)) {
		select {
		case u := <-l.lost:
			l.enqueue(requests, whole, u, due{at: time.Now()})
		default:
			return
		}
	}
}

// enqueue adds a request to those of a user.
func (l *load) enqueue(ctx, whole context.Context, u *user, d due) {
	if l.waiting.Add(1) > maxWaiting {
		l.waiting.Add(-1)
		l.tally.add(outcome{err: leasehold.Errorf("demo", leasehold.Limit, u.name(), "%d requests wait already", maxWaiting)})
		return
	}
	if !l.queues.add(u, d) {
		return // whoever is at it gets to this one
	}
	l.running.Go(func() {
		for d, ok := l.queues.take(u); ok; d, ok = l.queues.take(u) {
			out, complete := l.request(ctx, whole, u, d)
			if complete {
				l.tally.add(out)
			}
			l.waiting.Add(-1)
		}
	})
}

func (l *load) close() {
	_ = l.lookup.Close() // it always returns nil
	l.client.CloseIdleConnections()
}

// hearLosses has whoever lost a status set it again: a loss is an invitation to
// recreate what only callers know.
func (l *load) hearLosses(ctx context.Context) {
	for loss := range l.lookup.Losses(ctx) {
		l.tally.addLoss(loss, l.byRestart(loss))
		for _, u := range l.users.within(loss.Range).each() {
			told := u.lost.Swap(true)
			l.gone.explain(u)
			if !told {
				select {
				case l.lost <- u:
				default: // its next request sees to it
				}
			}
		}
	}
}

// counts is what callers have experienced so far.
func (l *load) counts() counts {
	c := l.tally.sum()
	c.silent = l.gone.silent(time.Now())
	return c
}
