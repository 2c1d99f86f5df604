package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A load is the callers: users of the presence service.
//
// Requests are due at a steady rate, whatever the latency of earlier ones and the state of the
// servers. The user is drawn first. If that user has a request under way the new one waits,
// and its latency counts from the time when it was due.
type load struct {
	cfg       *Config
	users     users
	table     table
	routed    *http.Client // sends each request to the owner of its key
	direct    *http.Client // sends a request to the server that its URL names
	scheme    string
	byRestart func(leasehold.Loss) bool // whether a restart caused a loss
	tally     *tally
	rand      *rand.Rand
	lost      chan *user // users who are to set their status again

	mu     sync.Mutex
	queues map[*user][]due // requests that wait, of the users who have one under way

	waiting atomic.Int64   // requests that are due and have not ended; maxWaiting at most
	running sync.WaitGroup // at most one goroutine for each user
}

func newLoad(cfg *Config, t table, routed, direct http.RoundTripper) *load {
	return &load{
		cfg: cfg, users: newUsers(cfg.Users), table: t, tally: newTally(), scheme: cfg.scheme(),
		routed: &http.Client{Transport: routed}, direct: &http.Client{Transport: direct},
		byRestart: func(leasehold.Loss) bool { return false },
		rand:      rand.New(rand.NewPCG(cfg.Seed, 2)), lost: make(chan *user, cfg.Users), queues: make(map[*user][]due),
	}
}

// A due is a request that a user is to make.
type due struct {
	at     time.Time
	set    bool // the status; otherwise read it
	queued bool // behind another request of its user
}

const (
	// tick is the interval at which requests become due, as many at a time as the rate
	// demands.
	tick = 10 * time.Millisecond
	// setTenths is how many of ten requests set the status.
	setTenths = 3
	// lastRequestsTimeout bounds requests that are under way at the end, when every key has
	// an owner again.
	lastRequestsTimeout = 15 * time.Second
	// maxWaiting bounds the requests that wait. More fail at once.
	maxWaiting = 1 << 18
)

// run sends requests at the rate until sending ends. It returns when all have ended, last
// has been called, and every missing status has been explained or counted as a silent loss.
// Requests that are under way when the whole ends are dropped and do not count.
func (l *load) run(sending, whole context.Context, last func(context.Context) error) error {
	listening, stop := context.WithCancel(whole)
	var listener sync.WaitGroup
	listener.Go(func() { l.followLosses(listening) })
	defer listener.Wait()
	defer stop()
	requests, cancel := context.WithCancel(whole)
	defer cancel()
	l.send(sending, requests, whole)
	timeout := time.AfterFunc(lastRequestsTimeout, cancel)
	defer timeout.Stop()
	l.running.Wait()
	err := last(whole)
	for l.tally.suspected(time.Now()) > 0 && proc.Pause(whole, poll) {
	}
	return err
}

// send makes requests until sending ends. One that could not be sent at its tick, because
// this process was not running, is sent later and counts from its tick.
func (l *load) send(sending, requests, whole context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	sent, begin := 0, time.Now()
	for at := begin; ; {
		select {
		case <-sending.Done():
			return
		case <-ticker.C:
		}
		for ; time.Since(at) >= 0 && sending.Err() == nil; at = at.Add(tick) {
			total := int(at.Sub(begin).Seconds() * float64(l.cfg.Rate))
			l.republish(requests, whole, 1+total-sent)
			for ; sent < total; sent++ {
				u := &l.users[l.rand.IntN(len(l.users))]
				l.enqueue(requests, whole, u, due{at: at, set: l.rand.IntN(10) < setTenths})
			}
		}
	}
}

// republish has users who lost their status make a request now, besides those that are due
// and at the same rate: a loss may affect all users at once.
func (l *load) republish(requests, whole context.Context, most int) {
	for ; most > 0 && len(l.lost) > 0; most-- {
		l.enqueue(requests, whole, <-l.lost, due{at: time.Now()})
	}
}

func (l *load) enqueue(ctx, whole context.Context, u *user, d due) {
	if l.waiting.Add(1) > maxWaiting {
		l.waiting.Add(-1)
		l.tally.add(outcome{err: leasehold.Errorf("demo", leasehold.ErrLimit, u.name(), "%d requests wait already", maxWaiting)})
		return
	}
	if !l.push(u, d) {
		return // the goroutine of an earlier request makes it
	}
	l.running.Go(func() {
		for d, ok := l.pop(u); ok; d, ok = l.pop(u) {
			out, complete := l.request(ctx, whole, u, d)
			if complete {
				l.tally.add(out)
			}
			l.waiting.Add(-1)
		}
	})
}

// push adds a request to the queue of its user, and reports whether that is new: then the
// caller makes the requests in it.
func (l *load) push(u *user, d due) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, busy := l.queues[u]
	d.queued = busy
	l.queues[u] = append(queue, d)
	return !busy
}

// pop returns the next request of a user. It removes the queue if that is empty.
func (l *load) pop(u *user) (due, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[u]
	if len(queue) == 0 {
		delete(l.queues, u)
		return due{}, false
	}
	l.queues[u] = queue[1:]
	return queue[0], true
}

// followLosses has users whose status was lost set it again: only callers can recreate it.
func (l *load) followLosses(ctx context.Context) {
	for loss, err := range l.table.Losses(ctx) {
		if err != nil {
			break
		}
		l.tally.addLoss(loss, l.byRestart(loss))
		for _, u := range l.users.within(loss.Range) {
			notified := u.lost.Swap(true)
			l.tally.explain(u)
			if notified {
				continue
			}
			select {
			case l.lost <- u:
			default: // its next request does it
			}
		}
	}
}

func (l *load) close() {
	_ = l.table.Close(context.Background()) // it always returns nil
	l.direct.CloseIdleConnections()
	l.routed.CloseIdleConnections()
}
