package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/secure"
)

// A flood is an identity that does too much, and to whom.
type flood struct {
	manager string
	keeper  *secure.Keeper
	name    string // of the owner that it is
}

// floodWidth is how many of a kind there are at a time. Beyond that the computer would measure
// the flood itself.
const floodWidth = 64

// A kind of flood does something once, again and again. It tells when it has begun.
type kind struct {
	name string
	once func(f flood, ctx context.Context, i int, begun func())
}

// kinds are all kinds of floods.
var kinds = []kind{
	{"messages", flood.messages},
	{"calls", flood.calls},
	{"connections", flood.connections},
}

// messages sends requests without a pause, on streams that stay.
func (f flood) messages(ctx context.Context, i int, begun func()) {
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
		r.says.Seq++
		err = r.stream.Send(wire.FromLeaseRequest(&r.says))
	}
}

// calls begins streams, on a connection that stays.
func (f flood) calls(ctx context.Context, i int, begun func()) {
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
		if r.again(ctx) != nil {
			return
		}
	}
}

// connections connects, says something and hangs up.
func (f flood) connections(ctx context.Context, i int, begun func()) {
	r, err := f.connect(ctx, i)
	if err != nil {
		return
	}
	defer r.close()
	_, _ = r.renew() // it may be refused by now
	begun()
}

func (f flood) connect(ctx context.Context, i int) (*renewer, error) {
	return newRenewer(ctx, f.manager, f.keeper.Client(), f.name, i)
}

// beFlood is what a process that floods does, until its input ends.
func beFlood(ctx context.Context, which, manager, identity string) error {
	var do *kind
	for i := range kinds {
		if kinds[i].name == which {
			do = &kinds[i]
		}
	}
	if do == nil {
		return fmt.Errorf("there is no flood of %q", which)
	}
	k, err := openKeeper(identity)
	if err != nil {
		return err
	}
	defer k.Close()
	f := flood{manager, k, filepath.Base(identity)}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var begun sync.WaitGroup
	for i := range floodWidth {
		begun.Add(1)
		once := sync.OnceFunc(begun.Done)
		running.Go(func() {
			for ctx.Err() == nil {
				do.once(f, ctx, i, once)
			}
			once()
		})
	}
	begun.Wait()
	fmt.Println("it has begun")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	running.Wait()
	return nil
}
