package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// Strike kills, stops or restarts one process, and returns what it did when all run again.
func (f *Fleet) Strike(ctx context.Context, random *rand.Rand) (string, error) {
	server := f.servers[random.IntN(len(f.servers))]
	switch n := random.IntN(7); {
	case n < 2 && proc.CanPause:
		return f.pause(ctx, server, random)
	case n == 2: // its names move to others, and nothing is lost
		ending, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := server.Terminate(ending); err != nil {
			return "", err
		}
		return server.Name + " was restarted", f.Revive(ctx, server, 0)
	case n == 3:
		p := f.managers[random.IntN(len(f.managers))]
		return p.Name + " was killed", f.Revive(ctx, p, upTo(random, 2*lease))
	case n == 4:
		p := f.frontends[random.IntN(len(f.frontends))]
		return p.Name + " was killed", f.Revive(ctx, p, upTo(random, time.Second))
	}
	return server.Name + " was killed", f.Revive(ctx, server, upTo(random, 2*lease))
}

// pause stops a process, for less or for more than its leases last. It is not told.
func (f *Fleet) pause(ctx context.Context, p *Process, random *rand.Rand) (string, error) {
	d, how := upTo(random, lease/2), "shortly"
	if random.IntN(2) == 0 {
		d, how = lease+upTo(random, lease), "for longer than its leases last"
	}
	if err := p.Pause(); err != nil {
		return "", err
	}
	waited := wait(ctx, d)
	if err := p.Resume(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was stopped %s, and went on", p.Name, how), waited
}

// Revive kills a process, if it is still there, and starts it after a time.
func (f *Fleet) Revive(ctx context.Context, p *Process, after time.Duration) error {
	p.Kill()
	if err := wait(ctx, after); err != nil {
		return err
	}
	return f.start(ctx, []*Process{p})
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
