package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// followAll is the process of the lookups. Each is reduced to its stream and to
// noting when it hears of a change: ten thousand whole ones, on the computer of
// the manager, would measure themselves. It ends when its input does.
func followAll(addr string, lookups, conns int) error {
	// What is one process here are hundreds in life, whose collections of garbage
	// are short and do not fall together. The manager's own are part of the figure.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	heard := make(chan arrival, 1<<16)
	var ready sync.WaitGroup
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return err
		}
		for range lookups / conns {
			ready.Add(1)
			if err := follow(ctx, conn, heard, ready.Done); err != nil {
				return err
			}
		}
	}
	ready.Wait()
	out := bufio.NewWriter(os.Stdout)
	_, _ = fmt.Fprintln(out, "ready") // Flush says what went wrong
	for {
		if len(heard) == 0 {
			if err := out.Flush(); err != nil {
				return nil // nobody wants to know any more
			}
		}
		select {
		case a := <-heard:
			_, _ = fmt.Fprintln(out, a.lsn, a.at.UnixNano())
		case <-ctx.Done():
			return nil
		}
	}
}

// follow opens one stream. Its first answer is the table; what comes after that
// is news.
func follow(ctx context.Context, conn *grpc.ClientConn, heard chan<- arrival, ready func()) error {
	stream, err := conn.NewStream(ctx, &leaseholdv1.LookupService_ServiceDesc.Streams[0],
		leaseholdv1.LookupService_Follow_FullMethodName, grpc.ForceCodecV2(newLean()))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: "fanout", Seq: 1}); err != nil {
		return err
	}
	go func() {
		var first heardOf
		err := stream.RecvMsg(&first)
		ready()
		for err == nil {
			var message heardOf
			if err = stream.RecvMsg(&message); err == nil {
				heard <- arrival{message.lsn, time.Now()}
			}
		}
	}()
	return nil
}
