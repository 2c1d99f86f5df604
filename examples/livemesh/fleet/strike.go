package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/child"
)

// A blow is one thing that happens to a process.
type blow func(f *Fleet, ctx context.Context, random *rand.Rand) (string, error)

// Strike does something to one process, and returns what it was when all run again.
func (f *Fleet) Strike(ctx context.Context, random *rand.Rand) (string, error) {
	blows := []blow{(*Fleet).killServer, (*Fleet).killServer, (*Fleet).pauseServer, (*Fleet).pauseServer, (*Fleet).restartServer, (*Fleet).killManager, (*Fleet).killFrontend}
	return blows[random.IntN(len(blows))](f, ctx, random)
}

func (f *Fleet) killServer(ctx context.Context, random *rand.Rand) (string, error) {
	p := one(random, f.servers)
	return fmt.Sprintf("%s was killed", p.Name), f.Revive(ctx, p, upTo(random, 2*f.cfg.Lease))
}

func (f *Fleet) killManager(ctx context.Context, random *rand.Rand) (string, error) {
	p := one(random, f.managers)
	return fmt.Sprintf("%s was killed", p.Name), f.Revive(ctx, p, upTo(random, 2*f.cfg.Lease))
}

func (f *Fleet) killFrontend(ctx context.Context, random *rand.Rand) (string, error) {
	p := one(random, f.frontends)
	return fmt.Sprintf("%s was killed", p.Name), f.Revive(ctx, p, upTo(random, time.Second))
}

// restartServer ends a server properly: its names move to others, and nothing is lost.
func (f *Fleet) restartServer(ctx context.Context, random *rand.Rand) (string, error) {
	p := one(random, f.servers)
	ending, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.Finish(ending); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was restarted", p.Name), f.Revive(ctx, p, 0)
}

// pauseServer stops a server, for less or for more than its leases last. It does not know.
func (f *Fleet) pauseServer(ctx context.Context, random *rand.Rand) (string, error) {
	if !child.CanSuspend {
		return f.killServer(ctx, random)
	}
	p, how := one(random, f.servers), "shortly"
	d := upTo(random, f.cfg.Lease/2)
	if random.IntN(2) == 0 {
		d, how = f.cfg.Lease+upTo(random, f.cfg.Lease), "for longer than its leases last"
	}
	if err := p.Stop(); err != nil {
		return "", err
	}
	waited := wait(ctx, d)
	if err := p.GoOn(); err != nil {
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
	select {
	case <-p.said: // in its last life
	default:
	}
	if err := p.Start(); err != nil {
		return err
	}
	return f.ready(ctx, p)
}

func one(random *rand.Rand, from []*Process) *Process { return from[random.IntN(len(from))] }

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
