// Election runs a leader election among a few processes. Only the leader writes to a
// ledger, once a second. When it ends, or steps down on Ctrl-C, another process is
// elected. The processes agree by a lease of package flease, without a server.
//
//	go run ./examples/election ledger 127.0.0.1:7100
//	go run ./examples/election run 1 127.0.0.1:7100 1=127.0.0.1:7101,2=127.0.0.1:7102,3=127.0.0.1:7103
//
// Repeat the second line with 2 and 3, each in a separate terminal.
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

// candidacy participates in elections until ctx ends.
func candidacy(ctx context.Context, cfg flease.Config, to store) error {
	node, err := flease.Start(cfg)
	if err != nil {
		return err
	}
	c := &candidate{node: node, store: to, lease: cfg.Lease, logf: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	err = c.run(ctx)
	ended, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(ended)) // releases its lease
}

// A candidate is a process that participates in elections.
type candidate struct {
	node  *flease.Node
	store store
	lease time.Duration
	logf  func(format string, args ...any)
}

// leadership is the resource: the holder of its lease is the leader.
const leadership = "leader"

// run acquires leadership again and again until ctx ends, or another process runs as
// the same member.
func (c *candidate) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	defer following.Wait()
	defer stop()
	for {
		lease, err := c.node.Acquire(ctx, leadership) // blocks while another member leads
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		why := c.lead(ctx, lease)
		c.logf("no longer leader: %v", why)
		// There is no queue between members: a member that acquires again at once would
		// win. The pause gives the others a turn.
		if lease.Release(ctx) == nil {
			pause(ctx, c.lease)
		}
	}
}

// lead acts as the leader, and returns the reason when leadership ends.
func (c *candidate) lead(ctx context.Context, lease *flease.Lease) error {
	c.logf("leader, with fence %d", lease.Fence())
	ctx, cancel := lease.Context(ctx) // long operations end with the lease
	defer cancel()
	for n := 1; ; n++ {
		// Before each write: the lease may have expired.
		if !lease.Valid() {
			return context.Cause(ctx)
		}
		// This process may be paused here for longer than the lease. So the store
		// receives the fence, and rejects a stale one.
		switch err := c.store.write(ctx, lease.Fence(), entry{Leader: uint32(c.node.Self()), Number: n}); {
		case errors.Is(err, errStale):
			return err
		case err != nil:
			c.logf("write failed: %v", err)
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// follow logs the current leader, as seen by this member.
func (c *candidate) follow(ctx context.Context) {
	for holder, err := range c.node.Watch(ctx, leadership) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.logf("%v", err)
		case holder.Unsure:
			c.logf("leader unknown")
		case holder.ID == 0:
			c.logf("no leader")
		case holder.ID != c.node.Self():
			c.logf("member %d is leader, with fence %d", holder.ID, holder.Fence)
		}
	}
}

// pause waits, and reports whether the full time passed.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
