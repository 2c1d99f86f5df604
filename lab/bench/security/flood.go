package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/secure"
)

const roleFlood = "flood"

// floodWidth is how many of a kind there are at a time. Beyond that the computer would
// measure the flood itself.
const floodWidth = 64

// floods are the kinds of floods.
var floods = []string{"messages", "calls", "connections"}

// FloodConfig is that of a flood.
type FloodConfig struct {
	Kind     string
	Manager  string // its address
	Identity string // the directory of its certificates
}

// Flood is an identity that sends too much. It is exported for net/rpc.
type Flood struct {
	FloodConfig
	keeper  *secure.Keeper
	stop    context.CancelFunc
	running sync.WaitGroup
}

// flooded calls a function while an identity floods the manager with a policy.
func (s *site) flooded(ctx context.Context, kind string, do func() ([]float64, error)) ([]float64, error) {
	config := FloodConfig{kind, s.guarded.All[0].Addr, s.file("owner", string(namespace), ownerName(owners))}
	p, err := proc.Start(ctx, roleFlood, config)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return do()
}

// startFlood returns when the flood has begun.
func startFlood(_ context.Context, c FloodConfig) (*Flood, error) {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		return nil, err
	}
	once, ok := map[string]func(*Flood, context.Context, int, func()){
		"messages": (*Flood).messages, "calls": (*Flood).calls, "connections": (*Flood).connections,
	}[c.Kind]
	if !ok {
		return nil, errors.New("there is no flood of " + c.Kind)
	}
	keeper, err := openKeeper(c.Identity)
	if err != nil {
		return nil, err
	}
	f := &Flood{FloodConfig: c, keeper: keeper}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	var begun sync.WaitGroup
	for i := range floodWidth {
		begun.Add(1)
		began := sync.OnceFunc(begun.Done)
		f.running.Go(func() {
			for ctx.Err() == nil {
				once(f, ctx, i, began)
			}
			began()
		})
	}
	begun.Wait()
	return f, nil
}

// Close ends the flood.
func (f *Flood) Close() error {
	f.stop()
	f.running.Wait()
	f.keeper.Close()
	return nil
}

// messages sends requests without a pause, on streams that stay.
func (f *Flood) messages(ctx context.Context, i int, begun func()) {
	r, err := f.connect(ctx, i)
	if err != nil {
		return
	}
	defer r.close()
	if _, err := r.renew(); err != nil {
		return
	}
	begun()
	go func() {
		for {
			if _, err := r.stream.Recv(); err != nil {
				return
			}
		}
	}()
	for err == nil {
		r.request.Seq++
		err = r.stream.Send(wire.FromLeaseRequest(&r.request))
	}
}

// calls begins streams, on a connection that stays.
func (f *Flood) calls(ctx context.Context, i int, begun func()) {
	r, err := f.connect(ctx, i)
	if err != nil {
		return
	}
	defer r.close()
	for ctx.Err() == nil {
		if _, err := r.renew(); err != nil && r.conn.GetState().String() != "READY" {
			return
		}
		begun()
		if r.open(ctx) != nil {
			return
		}
	}
}

// connections connects, renews once and closes the connection.
func (f *Flood) connections(ctx context.Context, i int, begun func()) {
	r, err := f.connect(ctx, i)
	if err != nil {
		return
	}
	defer r.close()
	_, _ = r.renew() // it may be refused by now
	begun()
}

func (f *Flood) connect(ctx context.Context, i int) (*renewer, error) {
	return newRenewer(ctx, f.Manager, f.keeper.Client(), filepath.Base(f.Identity), i)
}
