// Package worker runs one worker per name, such as a poller per device, on the server that owns the name.
package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Work is what one worker does. held reports whether this server still owns the name, and ctx ends soon after it does
// not. Each effect outside of the process carries the generation as fencing token.
type Work func(ctx context.Context, name string, generation leasehold.Generation, held func() bool)

// A Pool is a server that runs the workers of the names that it owns.
type Pool struct {
	owner   *owner.Owner
	changed chan struct{} // receives after a change of leases
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// Join joins a namespace, in which all servers have the same names.
func Join(ctx context.Context, as owner.Config, names []string, work Work) (*Pool, error) {
	p := &Pool{changed: make(chan struct{}, 1)}
	as.OnGrant, as.OnSuspend, as.OnResume = p.notify, p.notify, p.notify
	as.OnRevoke = func(ended []leasehold.Lease, _ leasehold.Cause) { p.notify(ended) }
	var err error
	if p.owner, err = owner.Join(ctx, as); err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.ended.Go(func() { p.run(ctx, names, work) })
	return p, nil
}

func (p *Pool) notify([]leasehold.Lease) {
	select {
	case p.changed <- struct{}{}:
	default: // run has not handled the change before
	}
}

// A worker is a running Work, and the lease under which it was started.
type worker struct {
	lease owner.Lease
	stop  context.CancelFunc
}

// run reconciles after each change of leases.
func (p *Pool) run(ctx context.Context, names []string, work Work) {
	workers := make(map[string]worker)
	for {
		p.reconcile(ctx, workers, names, work)
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
	}
}

// reconcile starts and stops workers, so that one runs for each name that this server owns.
func (p *Pool) reconcile(ctx context.Context, workers map[string]worker, names []string, work Work) {
	for _, name := range names {
		lease, owned := p.owner.Check(leasehold.KeyOf(name))
		w, runs := workers[name]
		if runs && (!owned || w.lease.Generation != lease.Generation) {
			w.stop()
			delete(workers, name)
			runs = false
		}
		if owned && !runs {
			ctx, stop := context.WithCancel(ctx)
			workers[name] = worker{lease, stop}
			p.ended.Go(func() {
				defer stop()
				work(ctx, name, lease.Generation, func() bool { return p.owner.Held(lease) })
			})
		}
	}
}

// Close stops the workers, and then gives the names to other servers. If the context ends first, the leases end although
// workers may still run; their effects carry old fencing tokens then.
func (p *Pool) Close(ctx context.Context) (err error) {
	p.stop()
	ended := make(chan struct{})
	go func() {
		p.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("workers have not ended: %w", ctx.Err())
	}
	return errors.Join(err, p.owner.Close(ctx))
}

// Handler reports the leases of this server.
func (p *Pool) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "leases: %d\n", p.owner.Status().Held)
	})
}
