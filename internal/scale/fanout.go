package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A follower is a lookup reduced to its stream: it notes when it hears of a
// change. Ten thousand whole lookups would measure themselves.
type follower struct {
	stream grpc.ClientStream
	heard  chan arrival
}

type arrival struct {
	lsn uint64
	at  time.Time
}

// fanOut measures how long a change takes to reach many lookups.
func fanOut(ctx context.Context, s *system, lookups, conns int) error {
	if err := s.create(ctx, "fanout"); err != nil {
		return err
	}
	first, err := join(ctx, s, 0)
	if err != nil {
		return err
	}
	defer closeNow(ctx, first)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	followers, err := follow(ctx, s, lookups, conns, &running)
	if err != nil {
		return err
	}
	var (
		all    []time.Duration
		joined []*owner.Owner
	)
	defer func() {
		for _, o := range joined {
			closeNow(ctx, o)
		}
	}()
	for round := 1; round <= 10; round++ {
		o, err := join(ctx, s, round)
		if err != nil {
			return err
		}
		times, err := collect(ctx, s, followers)
		if err != nil {
			return err
		}
		all = append(all, times...)
		joined = append(joined, o)
	}
	slices.Sort(all)
	at := func(p float64) time.Duration { return all[int(p*float64(len(all)-1))].Round(time.Millisecond / 10) }
	fmt.Printf("fan-out    a change reached %d lookups over %d connections, after its commit, in p50 %v, p99 %v, at most %v (wanted: p99 300ms)\n",
		lookups, conns, at(0.5), at(0.99), at(1))
	return nil
}

func join(ctx context.Context, s *system, i int) (*owner.Owner, error) {
	return owner.Join(ctx, owner.Config{
		Namespace: "fanout", Managers: []string{s.addr}, Name: leasehold.OwnerID(fmt.Sprintf("o%d", i)), Addr: fmt.Sprintf("10.1.0.%d:80", i+1),
	})
}

func closeNow(ctx context.Context, o *owner.Owner) {
	closing, cancel := context.WithCancel(ctx)
	cancel()
	_ = o.Close(closing)
}

func follow(ctx context.Context, s *system, lookups, conns int, running *sync.WaitGroup) ([]*follower, error) {
	var followers []*follower
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+s.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return nil, err
		}
		running.Go(func() {
			<-ctx.Done()
			_ = conn.Close()
		})
		for range lookups / conns {
			stream, err := conn.NewStream(ctx, &leaseholdv1.LookupService_ServiceDesc.Streams[0],
				leaseholdv1.LookupService_Follow_FullMethodName, grpc.ForceCodecV2(newLean()))
			if err != nil {
				return nil, err
			}
			f := &follower{stream: stream, heard: make(chan arrival, 64)}
			if err := stream.SendMsg(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: "fanout", Seq: 1}); err != nil {
				return nil, err
			}
			running.Go(f.listen)
			followers = append(followers, f)
		}
	}
	for _, f := range followers {
		select {
		case <-f.heard: // the first answer
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return followers, nil
}

func (f *follower) listen() {
	for {
		var message heardOf
		if f.stream.RecvMsg(&message) != nil {
			return
		}
		select {
		case f.heard <- arrival{message.lsn, time.Now()}:
		default:
		}
	}
}

// collect waits until every follower has heard of the next change, drains what
// follows, and returns how long after its commit each heard of it.
func collect(ctx context.Context, s *system, followers []*follower) ([]time.Duration, error) {
	arrivals := make([]arrival, len(followers))
	for i, f := range followers {
		select {
		case arrivals[i] = <-f.heard:
		case <-time.After(30 * time.Second):
			return nil, errors.New("a lookup heard nothing for 30 s")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	times := make([]time.Duration, len(arrivals))
	for i, a := range arrivals {
		at, ok := s.store.committed.Load(commit{"fanout", a.lsn})
		if !ok {
			return nil, fmt.Errorf("a lookup heard of change %d, which was not committed", a.lsn)
		}
		times[i] = a.at.Sub(at.(time.Time))
	}
	time.Sleep(3 * time.Second) // until the table is quiet again
	for _, f := range followers {
		for len(f.heard) > 0 {
			<-f.heard
		}
	}
	return times, nil
}
