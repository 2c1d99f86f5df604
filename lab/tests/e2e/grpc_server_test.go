//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// grpcServerVariable makes a copy of this test binary a gRPC server of counters. It prints
// a line of JSON when it serves, and drains on SIGTERM.
const grpcServerVariable = "LEASEHOLD_E2E_GRPC_SERVER"

// addMethod increments the counter of a name, and returns it.
const addMethod = "/leasehold.e2e.Counter/Add"

// runGRPCServer is the main function of a server. Its configuration is an ownerConfig
// whose name is the address.
func runGRPCServer(text string, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := serveGRPC(ctx, text, func() error { return json.NewEncoder(out).Encode(ownerAnswer{}) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveGRPC(ctx context.Context, text string, ready func() error) error {
	var config ownerConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", string(config.Name))
	if err != nil {
		return err
	}
	joining, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	counters, err := leasemap.Join(joining, owner.Config{
		Namespace: config.Namespace, Managers: config.Managers, Addr: string(config.Name),
	}, leasemap.Config[int64]{})
	if err != nil {
		return err
	}
	options, err := leasegrpc.ServerOptions(counters.Owner(), leasegrpc.ServerConfig{})
	if err != nil {
		return err
	}
	server := grpc.NewServer(options...)
	server.RegisterService(counterService(counters), nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := ready(); err != nil {
		return err
	}
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	err = counters.Close(closing) // the counters are transferred, and served until then
	server.GracefulStop()
	<-ended
	return err
}

// counterService is the description that generated code would have.
func counterService(counters *leasemap.Map[int64]) *grpc.ServiceDesc {
	add := func(ctx context.Context, request any) (any, error) {
		var n int64
		_, err := counters.Update(ctx, request.(*wrapperspb.StringValue).GetValue(), func(v *int64) error {
			*v++
			n = *v
			return nil
		})
		return wrapperspb.Int64(n), err
	}
	return &grpc.ServiceDesc{
		ServiceName: "leasehold.e2e.Counter",
		Methods: []grpc.MethodDesc{{
			MethodName: "Add",
			Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
				var name wrapperspb.StringValue
				if err := decode(&name); err != nil {
					return nil, err
				}
				return intercept(ctx, &name, &grpc.UnaryServerInfo{Server: srv, FullMethod: addMethod}, add)
			},
		}},
	}
}

// serveGRPCProcess starts a server, and waits until it serves.
func (g *group) serveGRPCProcess(t *testing.T, ns, addr string) *ownerProcess {
	t.Helper()
	return g.startCopy(t, grpcServerVariable, ns, addr, filepath.Join(t.TempDir(), "server.log"))
}
