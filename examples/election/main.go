// Election is a few processes of which one leads: it alone writes to a ledger, once
// a second. When it dies, or steps down on Ctrl-C, another leads. They agree among
// themselves, by a lease of package flease.
//
//	go run ./examples/election ledger 127.0.0.1:7100
//	go run ./examples/election run 1 127.0.0.1:7100 1=127.0.0.1:7101,2=127.0.0.1:7102,3=127.0.0.1:7103
//
// and the second line again with 2 and 3, in a terminal each.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "election:", err)
		os.Exit(1)
	}
}

const usage = "want: election ledger ADDRESS, or: election run ID LEDGER ID=ADDRESS,ID=ADDRESS"

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "ledger":
		return serve(ctx, args[1])
	case len(args) == 4 && args[0] == "run":
		members, err := parse(args[3])
		if err != nil {
			return err
		}
		self, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return errors.New(usage)
		}
		return candidacy(ctx, flease.Config{
			Self: flease.ID(self), Members: members, Lease: 2 * time.Second, Epsilon: 100 * time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}, remote{"http://" + args[2], http.DefaultClient})
	}
	return errors.New(usage)
}

func parse(list string) (members []flease.Member, _ error) {
	for item := range strings.SplitSeq(list, ",") {
		id, addr, found := strings.Cut(item, "=")
		n, err := strconv.ParseUint(id, 10, 32)
		if !found || err != nil {
			return nil, fmt.Errorf("%q: want ID=ADDRESS", item)
		}
		members = append(members, flease.Member{ID: flease.ID(n), Addr: addr})
	}
	return members, nil
}

// candidacy takes part in elections until ctx ends.
func candidacy(ctx context.Context, cfg flease.Config, to store) error {
	node, err := flease.Start(cfg)
	if err != nil {
		return err
	}
	c := &candidate{node: node, store: to, lease: cfg.Lease, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	err = c.run(ctx)
	ended, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(ended)) // which gives up what it holds
}

// A candidate leads now and then.
type candidate struct {
	node  *flease.Node
	store store
	lease time.Duration
	say   func(format string, args ...any)
}

// leadership is the resource: whoever has its lease leads.
const leadership = "leader"

// run wants to lead until ctx ends, or another process runs as the same member.
func (c *candidate) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	defer following.Wait()
	defer stop()
	for {
		lease, err := c.node.Acquire(ctx, leadership) // waits for as long as another leads
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		why := c.lead(ctx, lease)
		c.say("I lead no more: %v", why)
		// Others wait, and there is no queue between members: whoever asks again at
		// once is the first. So it lets them.
		if lease.Release(ctx) == nil {
			pause(ctx, c.lease)
		}
	}
}

// lead acts as the leader, and returns why it does so no more.
func (c *candidate) lead(ctx context.Context, lease *flease.Lease) error {
	c.say("I lead, with fence %d", lease.Fence())
	ctx, cancel := lease.Context(ctx) // what takes long ends with the lease
	defer cancel()
	for n := 1; ; n++ {
		// Before each act: it may be over, and nobody has told us yet.
		if !lease.Valid() {
			return context.Cause(ctx)
		}
		// We may be stopped right here, for longer than the lease. So the store gets
		// the fence, and refuses who comes too late.
		switch err := c.store.write(ctx, lease.Fence(), entry{Leader: uint32(c.node.Self()), Number: n}); {
		case errors.Is(err, errStale):
			return err
		case err != nil:
			c.say("the ledger was not written: %v", err)
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// follow says who leads, as far as this member knows.
func (c *candidate) follow(ctx context.Context) {
	for holder, err := range c.node.Watch(ctx, leadership) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.say("%v", err)
		case holder.Unsure:
			c.say("who leads is not known yet")
		case holder.ID == 0:
			c.say("nobody leads")
		case holder.ID != c.node.Self():
			c.say("member %d leads, with fence %d", holder.ID, holder.Fence)
		}
	}
}

// pause waits, and reports whether it was for the whole time.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
