package queue

import (
	"context"
	"maps"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// An Interest is a name of another service that a device depends on.
type Interest struct {
	Service string `json:"service"`
	Name    string `json:"name"`
}

// Lost are names of another service whose state was lost.
type Lost struct {
	Service string   `json:"service"`
	Names   []string `json:"names"`
}

// addLosses adds messages about losses of interests since the last call for the queue. The queue
// may have been transferred meanwhile: LSNs are the same for all lookups.
func (s *Service) addLosses(q *queue) {
	reported := make(map[string]leasehold.LSN)
	maps.Copy(reported, q.Reported)
	for service, l := range s.cfg.Watch {
		lost, lsn := Lost{Service: service}, l.LSN()
		for _, i := range q.Interests {
			if i.Service == service && l.LostSince(leasehold.KeyOf(i.Name), reported[service]) {
				lost.Names = append(lost.Names, i.Name)
			}
		}
		if len(lost.Names) > 0 && !q.add(Message{Lost: &lost}, s.cfg.Room) {
			q.miss()
		}
		reported[service] = max(reported[service], lsn)
	}
	q.Reported = reported
}

// losses wakes waiting requests when another service has lost state.
type losses struct {
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	notice chan struct{} // closed by the next loss
}

func followLosses(watch map[string]*lookup.Lookup) *losses {
	ctx, end := context.WithCancel(context.Background())
	f := &losses{end: end, notice: make(chan struct{})}
	for _, l := range watch {
		f.running.Go(func() {
			for _, err := range l.Losses(ctx) {
				if err != nil {
					return
				}
				f.notify()
			}
		})
	}
	return f
}

// next returns a channel that the next loss closes.
func (f *losses) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notice
}

func (f *losses) notify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.notice)
	f.notice = make(chan struct{})
}

func (f *losses) stop() {
	f.end()
	f.running.Wait()
}
