package leasegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// A presenceServer uses the health service to return whether a user is online.
type presenceServer struct {
	grpc_health_v1.UnimplementedHealthServer
	users *leasemap.Map[bool]
}

// Check returns the state of a user. Package leasemap checks the lease.
func (s *presenceServer) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	there, _, err := s.users.Get(r.GetService())
	if err != nil {
		return nil, err // after ErrNotOwner the caller retries elsewhere
	}
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}
	if there {
		answer.Status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	return answer, nil
}

// methods is for callers and servers: the user is in a field of the request.
var methods = map[string]leasegrpc.Method{
	"/grpc.health.v1.Health/Check": {KeyField: "service", Idempotent: true},
}

// A caller connects to a namespace of some managers.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := leasegrpc.NewClient(ctx, "leasehold://manager-1:7400,manager-2:7400/presence",
		leasegrpc.Config{Methods: methods},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = conn.Close() }()

	presence := grpc_health_v1.NewHealthClient(conn)
	answer, err := presence.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "alice"})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("alice is", answer.GetStatus())
}

// A connection that uses an open lookup, with the key as a call option.
func ExampleDialOptions() {
	var l *lookup.Lookup // from lookup.Open

	options, err := leasegrpc.DialOptions(l, leasegrpc.Config{MaxOutstanding: 1000})
	if err != nil {
		log.Print(err)
		return
	}
	conn, err := grpc.NewClient("leasehold:///presence",
		append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = conn.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, leasegrpc.WithKey("alice"))
	switch {
	case errors.Is(err, leasehold.ErrNoOwner):
		log.Print("alice has no owner: not executed")
	case status.Code(err) == codes.Unavailable:
		log.Print("it may have been done")
	}
}

// A server that rejects calls for other keys, and moves its state when it stops.
func ExampleServerOptions() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "10.0.1.7:8080") // before Join: an owner must be able to serve
	if err != nil {
		log.Print(err)
		return
	}
	users, err := leasemap.Join(ctx, owner.Config{
		Namespace: "presence", Managers: []string{"manager-1:7400", "manager-2:7400"}, Addr: "10.0.1.7:8080",
	}, leasemap.Config[bool]{})
	if err != nil {
		log.Print(err)
		return
	}
	options, err := leasegrpc.ServerOptions(users.Owner(), leasegrpc.ServerConfig{Methods: methods})
	if err != nil {
		log.Print(err)
		return
	}
	server := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(server, &presenceServer{users: users})
	go func() {
		<-ctx.Done()
		_ = users.Close(context.Background()) // moves the users, and serves them until then
		server.GracefulStop()
	}()
	log.Print(server.Serve(listener))
}

// A handler with its own state stores the generation of the lease with it.
func ExampleLease() {
	type document struct {
		text       string
		generation leasehold.Generation
	}
	documents := map[leasehold.Key]document{} // a real server needs a lock

	update := func(ctx context.Context, text string) error {
		lease, ok := leasegrpc.Lease(ctx)
		if !ok {
			return status.Error(codes.Internal, "the method is Unkeyed")
		}
		d := documents[lease.Key]
		if d.generation > lease.Generation {
			return leasehold.ErrNotOwner // the state is newer than this call's lease
		}
		if d.generation < lease.Generation {
			d = document{} // state of an earlier lease is stale
		}
		d.text, d.generation = d.text+text, lease.Generation
		documents[lease.Key] = d
		return nil
	}

	fmt.Println(update(context.Background(), "a line\n"))
	// Output: rpc error: code = Internal desc = the method is Unkeyed
}
