package queue

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
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

// setInterests says on which names of other services a device depends, in place of what
// was said before.
func (s *Service) setInterests(r *jsonhttp.Request, interests []Interest) (any, error) {
	if len(interests) > MaxInterests {
		return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "%d interests, and %d are allowed", len(interests), MaxInterests)
	}
	for _, i := range interests {
		if err := jsonhttp.ValidName("set interests", "what a device depends on", i.Name); err != nil {
			return nil, err
		}
		if s.cfg.Watch[i.Service] == nil {
			return nil, leasehold.Errorf("set interests", leasehold.ErrInvalid, r.Name, "there is no service %q: want one of %s", i.Service, strings.Join(slices.Sorted(maps.Keys(s.cfg.Watch)), ", "))
		}
	}
	return nil, s.do(r.Context(), r.Name, func(q *queue) error {
		s.addLosses(q) // of what it depended on before
		q.Interests = slices.Clone(interests)
		return nil
	})
}

// addLosses adds messages about what was lost of other services since it was last called for
// the queue. Where the queue was then does not matter: LSNs are the same for all lookups.
func (s *Service) addLosses(q *queue) {
	told := maps.Clone(q.Told)
	if told == nil {
		told = make(map[string]leasehold.LSN)
	}
	for service, l := range s.cfg.Watch {
		lost, lsn := Lost{Service: service}, l.LSN()
		for _, i := range q.Interests {
			if i.Service == service && l.LostSince(leasehold.KeyOf(i.Name), told[service]) {
				lost.Names = append(lost.Names, i.Name)
			}
		}
		if len(lost.Names) > 0 && !q.add(Message{Lost: &lost}, s.cfg.Room) {
			q.miss()
		}
		told[service] = max(told[service], lsn)
	}
	q.Told = told
}

// follow wakes devices that wait, when another service has lost state.
func (s *Service) follow(ctx context.Context) {
	for _, l := range s.cfg.Watch {
		s.following.Go(func() {
			for _, err := range l.Losses(ctx) {
				if err != nil {
					break
				}
				s.bells.ringAll()
			}
		})
	}
}
