package access

import (
	"context"
	"time"
)

// lookEvery is how often streams are looked at, and tidyEvery how often those are
// forgotten who ask for nothing.
const (
	lookEvery = 400 * time.Millisecond
	tidyEvery = 10 * time.Second
)

// enter lets a call be looked at until it leaves.
func (p *Policy) enter(s *session) error {
	if err := p.budgets.open(s); err != nil {
		return err
	}
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	p.streams[s] = true
	return nil
}

func (p *Policy) leave(s *session) {
	p.budgets.close(s)
	p.streamsMu.Lock()
	defer p.streamsMu.Unlock()
	delete(p.streams, s)
}

func (p *Policy) run(ctx context.Context) {
	defer close(p.done)
	reading := time.NewTimer(p.cfg.Poll)
	defer reading.Stop()
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	tidied := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reading.C:
			reading.Reset(p.poll())
		case now := <-looking.C:
			p.look(now)
			p.audit.sumUp(now)
			if now.Sub(tidied) >= tidyEvery {
				tidied = now
				p.budgets.tidy(now)
			}
		}
	}
}

// look ends the streams that are not permitted any more.
func (p *Policy) look(now time.Time) {
	p.streamsMu.Lock()
	all := make([]*session, 0, len(p.streams))
	for s := range p.streams {
		all = append(all, s)
	}
	p.streamsMu.Unlock()
	for _, s := range all {
		if over := s.ended.Load(); over != nil {
			if now.Sub(over.at) >= lookEvery { // its handler has had time to say why
				s.force()
			}
		} else if err := s.look(now); err != nil {
			_ = s.end(err) // its handler returns it
		}
	}
}
