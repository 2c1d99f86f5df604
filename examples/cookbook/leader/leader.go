// Package leader elects one server of a service, which runs a task at intervals. The leader is the owner of a fixed key.
package leader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Task runs on the leader. Each effect outside of the process carries the term as fencing token: terms increase
// with each leader. ctx ends when the server leaves.
type Task func(ctx context.Context, term leasehold.Generation)

// A Candidate is a server that runs the task while it leads.
type Candidate struct {
	owner *owner.Owner
	key   leasehold.Key
	stop  context.CancelFunc
	ended chan struct{} // closed when the task has ended
}

// Join joins an election: the candidates are the owners of the namespace. The leader runs the task at each interval.
func Join(ctx context.Context, as owner.Config, election string, every time.Duration, task Task) (*Candidate, error) {
	o, err := owner.Join(ctx, as)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Candidate{owner: o, key: leasehold.KeyOf(election), stop: stop, ended: make(chan struct{})}
	go c.run(ctx, every, task)
	return c, nil
}

func (c *Candidate) run(ctx context.Context, every time.Duration, task Task) {
	defer close(c.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if lease, leads := c.owner.Check(c.key); leads {
			task(ctx, lease.Generation)
		}
	}
}

// Close ends the task and resigns: another candidate leads at once. If the context ends first, the lease ends although the
// task may still run; the effects of the task carry an old fencing token then.
func (c *Candidate) Close(ctx context.Context) (err error) {
	c.stop()
	select {
	case <-c.ended:
	case <-ctx.Done():
		err = fmt.Errorf("the task has not ended: %w", ctx.Err())
	}
	return errors.Join(err, c.owner.Close(ctx))
}

// Handler reports whether this server leads.
func (c *Candidate) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lease, leads := c.owner.Check(c.key)
		fmt.Fprintf(w, "leader: %t, term %d\n", leads, lease.Generation)
	})
}
