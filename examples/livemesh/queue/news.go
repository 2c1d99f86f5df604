package queue

import (
	"context"
	"errors"
	"sync"

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

// follow reads the losses of a service, from where the queue that was told least left off.
func (n *news) follow(service string, l *lookup.Lookup) {
	for n.ctx.Err() == nil {
		ctx, again := context.WithCancel(n.ctx)
		n.mu.Lock()
		n.restart[service] = again
		n.mu.Unlock()
		for loss := range l.LossesSince(ctx, n.oldest(service, l.LSN())) {
			n.tellAll(service, loss)
		}
		again()
	}
}

// oldest is up to where all queues have been told.
func (n *news) oldest(service string, lsn leasehold.LSN) leasehold.LSN {
	for name := range n.s.queues.Names() {
		q, version, err := n.s.queues.Get(name)
		if told, ok := q.Told[service]; err == nil && version.Exists() && ok {
			lsn = min(lsn, told)
		}
	}
	return lsn
}

func (n *news) tellAll(service string, loss leasehold.Loss) {
	for name := range n.s.queues.Names() {
		if n.ctx.Err() != nil {
			return
		}
		// One that fails has gone to another server, which tells it.
		_ = n.tell(name, service, loss)
	}
}

// errNothing is that there is nothing to be told.
var errNothing = errors.New("nothing to be told")

// tell adds a message about a loss to a queue, if its device depends on what was lost.
func (n *news) tell(name, service string, loss leasehold.Loss) error {
	told := false
	err := n.s.do(n.ctx, name, func(q *queue) error {
		var lost []string
		for _, i := range q.Interests {
			if i.Service == service && loss.Range.Contains(leasehold.KeyOf(i.Name)) {
				lost = append(lost, i.Name)
			}
		}
		old := loss.Cause != leasehold.CauseContact && loss.LSN <= q.Told[service]
		if old || len(lost) == 0 {
			return errNothing
		}
		if !q.add(Message{Lost: &Lost{service, lost}}, n.s.cfg.Room) {
			q.miss()
		}
		q.told(service, loss.LSN)
		told = true
		return nil
	})
	if told && err == nil {
		n.s.bells.ring(name)
	}
	return err
}
