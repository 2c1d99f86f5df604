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

// The examples use the health service as if it were one of presence, which says whether
// a user is there. A presenceServer is such a server.
type presenceServer struct {
	grpc_health_v1.UnimplementedHealthServer
	users *leasemap.Map[bool]
}

// Check answers about a user. All that it has to do about leases package leasemap does.
func (s *presenceServer) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	there, _, err := s.users.Get(r.GetService())
	if err != nil {
		return nil, err // its kind crosses the wire: NotOwner has the caller try elsewhere
	}
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}
	if there {
		answer.Status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	return answer, nil
}

// methods is shared by callers and servers: the user is in a field of the request.
var methods = map[string]leasegrpc.Method{
	"/grpc.health.v1.Health/Check": {KeyField: "service", Idempotent: true},
}

// A caller says which managers to ask, and calls as always.
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

// A program that follows the lease table already routes by it. The key may also be said
// with each call.
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
		log.Print("nobody had alice all the while: nothing was done")
	case status.Code(err) == codes.Unavailable:
		log.Print("it may have been done")
	}
}

// A server refuses what it does not own, and restarted without losing anything.
func ExampleServerOptions() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "10.0.1.7:8080") // first: keys are for servers that can serve
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
		_ = users.Close(context.Background()) // users go to other servers, and are served until they have gone
		server.GracefulStop()
	}()
	log.Print(server.Serve(listener))
}

// A handler that keeps its state in its own way stamps it with the generation of its
// lease.
func ExampleLease() {
	type document struct {
		text       string
		generation leasehold.Generation
	}
	documents := map[leasehold.Key]document{} // under a lock, in a real server

	update := func(ctx context.Context, text string) error {
		lease, ok := leasegrpc.Lease(ctx)
		if !ok {
			return status.Error(codes.Internal, "the method is Unkeyed")
		}
		d := documents[lease.Key]
		if d.generation > lease.Generation {
			return leasehold.ErrNotOwner // this call is late: the key has come back since
		}
		if d.generation < lease.Generation {
			d = document{} // what is left of an earlier tenure is worth nothing
		}
		d.text, d.generation = d.text+text, lease.Generation
		documents[lease.Key] = d
		return nil
	}

	fmt.Println(update(context.Background(), "a line\n"))
	// Output: rpc error: code = Internal desc = the method is Unkeyed
}
