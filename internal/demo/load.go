package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A load is the callers: users of the presence service who find its servers
// through the lookup library.
type load struct {
	rate   int
	users  users
	lookup *lookup.Lookup
	client *http.Client
	tally  *tally
	rand   *rand.Rand
	// attempts is how often a request is tried: for as long as an owner that was
	// killed stays away, and then some.
	attempts int
	lost     chan *user // who is to set their status again; each at most once

	running sync.WaitGroup // one goroutine for each user at most
}

const lookupPatience = 20 * time.Second

func newLoad(ctx context.Context, cfg *Config, managers []string) (*load, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: managers})
	if err != nil {
		return nil, err
	}
	return &load{
		rate: cfg.Rate, users: newUsers(cfg.Users), lookup: l, tally: newTally(),
		client: &http.Client{Transport: &http.Transport{
			MaxConnsPerHost: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		}},
		rand: rand.New(rand.NewPCG(cfg.Seed, 2)), attempts: attemptsFor(cfg.Lease),
		lost: make(chan *user, cfg.Users),
	}, nil
}

// attemptsFor is enough attempts for three leases, at the half second at least
// that is between two of them once the first few have failed.
func attemptsFor(lease time.Duration) int { return 20 + int(3*lease/(500*time.Millisecond)) }

// beat is how often requests are sent off; as many as are due.
const beat = 10 * time.Millisecond

// lastRequests is how long requests may take that are under way at the end, when
// every key has an owner again.
const lastRequests = 15 * time.Second

// run sends requests at the rate until sending ends, and returns when all have
// been answered or given up. Requests that are under way when the whole ends
// are dropped and do not count.
func (l *load) run(sending, whole context.Context) {
	requests, cancel := context.WithCancel(whole)
	defer cancel()
	l.running.Go(func() { l.hearLosses(sending) })
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	begin, sent := time.Now(), 0
	for sending.Err() == nil {
		select {
		case <-sending.Done():
		case <-ticker.C:
			due := int(time.Since(begin).Seconds() * float64(l.rate))
			// What could not be sent when it was due is not made up for.
			for sent = max(sent, due-l.rate/10-1); sent < due; sent++ {
				l.send(requests, whole)
			}
		}
	}
	patient := time.AfterFunc(lastRequests, cancel)
	defer patient.Stop()
	l.running.Wait()
}

func (l *load) close() {
	_ = l.lookup.Close() // it always returns nil
	l.client.CloseIdleConnections()
}

// send lets some user make a request: one who has lost a status, or anybody who
// is not busy. If nobody is found, there is no request.
func (l *load) send(ctx, whole context.Context) {
	u := l.choose()
	if u == nil {
		return
	}
	set := l.rand.IntN(10) < 3
	l.running.Go(func() {
		defer u.busy.Store(false)
		if out := l.request(ctx, u, set); out.err == nil || whole.Err() == nil {
			l.tally.add(out)
		}
	})
}

func (l *load) choose() *user {
	select {
	case u := <-l.lost:
		if u.busy.CompareAndSwap(false, true) {
			return u
		}
		// Its next request, whenever that is, sets the status again.
	default:
	}
	const attempts = 8
	for range attempts {
		if u := l.users[l.rand.IntN(len(l.users))]; u.busy.CompareAndSwap(false, true) {
			return u
		}
	}
	return nil
}

// request makes one request and repeats it until it succeeds.
func (l *load) request(ctx context.Context, u *user, set bool) outcome {
	var out outcome
	number, republish := u.next(set)
	out.republished = republish
	_, owned := l.lookup.Find(u.key)
	out.waited = !owned
	var answer statusDocument
	begin := time.Now()
	out.err = l.lookup.Do(ctx, u.key, func(ctx context.Context, addr string) error {
		out.attempts++
		var err error
		answer, err = l.attempt(ctx, addr, u.name, number)
		if errors.Is(err, leasehold.NotOwner) {
			out.misroutes++
		}
		return err
	}, lookup.Idempotent(), lookup.Attempts(l.attempts))
	out.took = time.Since(begin)
	if out.err == nil {
		out.stale = u.judge(number, answer.Number)
	} else if republish {
		u.lost.Store(true) // it is still to be done
	}
	return out
}

// hearLosses has whoever lost a status set it again: a loss is an invitation to
// recreate what only callers know.
func (l *load) hearLosses(ctx context.Context) {
	for loss := range l.lookup.Losses(ctx) {
		l.tally.addLoss(loss)
		for _, u := range l.users.within(loss.Range) {
			if !u.lost.Swap(true) {
				select {
				case l.lost <- u:
				default: // all are in it already
				}
			}
		}
	}
}
