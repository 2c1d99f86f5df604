package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// news tells devices, through their queues, what was lost of other services.
type news struct {
	s       *Service
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	restart map[string]context.CancelFunc // of each service: read its losses anew
}

func newNews(s *Service) *news {
	ctx, cancel := context.WithCancel(context.Background())
	return &news{s: s, ctx: ctx, cancel: cancel, restart: make(map[string]context.CancelFunc)}
}

func (n *news) start() {
	for service, l := range n.s.cfg.Watch {
		n.running.Go(func() { n.follow(service, l) })
	}
}

func (n *news) stop() {
	n.cancel()
	n.running.Wait()
}

// arrived is that there may be queues which have been told less than ours.
func (n *news) arrived() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, again := range n.restart {
		again()
	}
}

// A reading is the losses of a service from an LSN on, read to the end or until there is a
// reason to begin anew.
type reading struct {
	service string
	from    leasehold.LSN
	again   context.CancelFunc
}

// follow reads the losses of a service, from where the queue that was told least left off.
func (n *news) follow(service string, l *lookup.Lookup) {
	for n.ctx.Err() == nil {
		ctx, again := context.WithCancel(n.ctx)
		n.mu.Lock()
		n.restart[service] = again
		n.mu.Unlock()
		r := reading{service, n.oldest(service, l.LSN()), again}
		for loss := range l.LossesSince(ctx, r.from) {
			n.each(func(name string) bool { return n.tell(name, r, loss) })
		}
		if ctx.Err() == nil {
			again()
			return // the lookup was closed, and knows of nothing any more
		}
	}
}

// oldest is up to where all queues have been told.
func (n *news) oldest(service string, lsn leasehold.LSN) leasehold.LSN {
	n.each(func(name string) bool {
		q, _, err := n.s.queues.Get(name)
		if told, ok := q.Told[service]; ok {
			lsn = min(lsn, told)
		}
		return err == nil
	})
	return lsn
}

// moving is how long we wait for a queue that must not be served for now.
const moving = 100 * time.Millisecond

// each does something to all queues, which reports false if a queue must not be served for
// now, because it is about to go to another server. It may yet stay here: we try until that
// is known.
func (n *news) each(do func(name string) bool) {
	wanted := func(string) bool { return true }
	for {
		stopped := make(map[string]bool)
		for name := range n.s.queues.All() {
			if n.ctx.Err() == nil && wanted(name) && !do(name) {
				stopped[name] = true
			}
		}
		if len(stopped) == 0 {
			return
		}
		wanted = func(name string) bool { return stopped[name] }
		select {
		case <-time.After(moving):
		case <-n.ctx.Done():
			return
		}
	}
}

// errNothing is that there is nothing to be told.
var errNothing = errors.New("nothing to be told")

// tell adds a message about a loss to a queue, if its device depends on what was lost. It
// reports false if the queue must not be served for now.
func (n *news) tell(name string, r reading, loss leasehold.Loss) bool {
	err := n.s.do(n.ctx, name, func(q *queue) error {
		lost := q.dependsOn(r.service, loss.Range)
		told := q.Told[r.service]
		switch {
		case len(lost) == 0:
			return errNothing
		case loss.Cause == leasehold.CauseContact: // of a lookup with ConservativeRecovery: it is repeated with the same LSN
		case told < r.from:
			r.again() // it came after we had begun, and has not been told of what was before
			return errNothing
		case loss.LSN <= told:
			return errNothing
		}
		if !q.add(Message{Lost: &Lost{r.service, lost}}, n.s.cfg.Room) {
			q.miss()
		}
		q.told(r.service, loss.Resume)
		return nil
	})
	if err == nil {
		n.s.bells.ring(name)
	}
	// What was lost on the way may have been told: then it is not told again.
	return !errors.Is(err, leasehold.NotOwner) && !errors.Is(err, leasehold.Unavailable)
}

// dependsOn returns what a device depends on of a service and in a range.
func (q *queue) dependsOn(service string, r leasehold.Range) (names []string) {
	for _, i := range q.Interests {
		if i.Service == service && r.Contains(leasehold.KeyOf(i.Name)) {
			names = append(names, i.Name)
		}
	}
	return names
}
