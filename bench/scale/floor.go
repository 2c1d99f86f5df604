package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/crowd"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The floor is a gRPC server that answers questions of lookups and does nothing else: what
// any server on gRPC must do for as many messages on as many connections.

const roleEcho = "echo"

// An echo is that server.
type echo struct {
	leaseholdv1.UnimplementedLookupServiceServer
	server *grpc.Server
	served chan struct{} // closed when it serves no more
}

// startEcho listens, with the options of a manager.
func startEcho(context.Context, []string) (cast.Member, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	e := &echo{server: grpc.NewServer(wire.ServerOptions()...), served: make(chan struct{})}
	leaseholdv1.RegisterLookupServiceServer(e.server, e)
	go func() {
		defer close(e.served)
		_ = e.server.Serve(l) // until it is stopped
	}()
	return e, l.Addr().String(), nil
}

// Follow says of an empty table that it is the newest, as often as it is asked.
func (e *echo) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
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

// Obey says what it has used.
func (e *echo) Obey(_ context.Context, o cast.Order) (cast.Answer, error) {
	if o.Do != cast.OrderCPU {
		return cast.Answer{}, cast.UnknownOrder(o)
	}
	return cast.Answer{CPU: int64(cast.CPUTime())}, nil
}

func (e *echo) Close() error {
	e.server.Stop()
	<-e.served
	return nil
}

// floor measures it with as many clients as a size has, of whom all are lookups that ask so
// often that there are as many messages. It returns percents of a core.
func floor(ctx context.Context, s size, windows int) (out []float64, err error) {
	server, err := cast.BeginGroup(ctx, roleEcho, 1, func(int) []string { return nil })
	if err != nil {
		return nil, err
	}
	defer server.Close()
	clients, err := crowd.Start(ctx, namespace, server[0].Info())
	if err != nil {
		return nil, err
	}
	defer clients.Close()
	order := crowd.Order{Do: crowd.Grow, Lookups: s.clients(), Together: s.together, Within: s.grow / 2, Poll: s.floorPoll()}
	if _, err := clients.Obey(order); err != nil {
		return nil, err
	}
	_, window := s.windows(windows)
	for range windows + 1 {
		before, err := server.CPU()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := pause(ctx, window); err != nil {
			return nil, err
		}
		after, err := server.CPU()
		if err != nil {
			return nil, err
		}
		out = append(out, 100*(after-before).Seconds()/time.Since(begun).Seconds())
	}
	now, err := clients.Obey(crowd.Order{Do: crowd.Look})
	if err == nil && now.Proven != s.clients() {
		err = fmt.Errorf("of %d clients of the floor %d are answered", s.clients(), now.Proven)
	}
	return out[1:], err // in the first window some have just come
}

// floorPoll is how often each client asks if all together ask as often as owners renew and
// lookups ask.
func (s size) floorPoll() time.Duration {
	perSecond := float64(s.owners)/protocol.DefaultTiming().Renew.Seconds() + float64(s.lookups)/crowd.Poll.Seconds()
	return time.Duration(float64(s.clients()) / perSecond * float64(time.Second))
}
