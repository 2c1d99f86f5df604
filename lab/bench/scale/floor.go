package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The floor is a gRPC server that answers questions of lookups and does nothing else: what
// any server on gRPC must do for as many messages on as many connections.

const roleEcho = "echo"

// Echo is that server. It is exported for net/rpc.
type Echo struct {
	leaseholdv1.UnimplementedLookupServiceServer
	server *grpc.Server
	addr   string
	served chan struct{} // closed when it serves no more
}

// startEcho listens, with the options of a manager.
func startEcho(context.Context, struct{}) (*Echo, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &Echo{server: grpc.NewServer(wire.ServerOptions()...), addr: l.Addr().String(), served: make(chan struct{})}
	leaseholdv1.RegisterLookupServiceServer(e.server, e)
	go func() {
		defer close(e.served)
		_ = e.server.Serve(l) // until it is stopped
	}()
	return e, nil
}

// Follow answers every request that an empty table is the newest.
func (e *Echo) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		update := &leaseholdv1.Update{Namespace: r.GetNamespace(), Manager: "127.0.0.1:7400", Term: 1, Echo: r.GetSeq()}
		if err := stream.Send(&leaseholdv1.FollowResponse{Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Update{Update: update}}); err != nil {
			return err
		}
	}
}

// Addr is where it serves clients.
func (e *Echo) Addr() string { return e.addr }

// Close ends the server.
func (e *Echo) Close() error {
	e.server.Stop()
	<-e.served
	return nil
}

// floor measures it with as many clients as a size has, all of them lookups that poll so
// often that there are as many messages. It returns percents of a core.
func floor(ctx context.Context, s size, windows int) (out []float64, err error) {
	server, err := proc.Start(ctx, roleEcho, nil)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	clients, err := loadgen.StartClients(ctx, namespace, nil, []string{server.Addr})
	if err != nil {
		return nil, err
	}
	defer clients.Close()
	if _, err := clients.Grow(loadgen.Growth{Lookups: s.clients(), Together: s.together, Within: s.grow / 2, Poll: s.floorPoll()}); err != nil {
		return nil, err
	}
	_, window := s.windows(windows)
	for range windows + 1 {
		before, err := proc.Group{server}.CPU()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := proc.Pause(ctx, window); err != nil {
			return nil, err
		}
		after, err := proc.Group{server}.CPU()
		if err != nil {
			return nil, err
		}
		out = append(out, 100*(after-before).Seconds()/time.Since(begun).Seconds())
	}
	now, err := clients.Look()
	if err == nil && now.Proven != s.clients() {
		err = fmt.Errorf("of %d clients of the floor %d are answered", s.clients(), now.Proven)
	}
	return out[1:], err // in the first window some have just connected
}

// floorPoll is how often each client asks if all together ask as often as owners renew and
// lookups ask.
func (s size) floorPoll() time.Duration {
	perSecond := float64(s.owners)/protocol.DefaultTiming().Renew.Seconds() + float64(s.lookups)/loadgen.Poll.Seconds()
	return time.Duration(float64(s.clients()) / perSecond * float64(time.Second))
}
