// Package managers asks a group of managers, for the demo and for chaos: one after the other,
// since any of them may be dead.
package managers

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Group is connections to all managers. It may be used from many goroutines at once.
type Group struct {
	conns    []*grpc.ClientConn
	patience time.Duration
}

// A Question is put to one manager.
type Question func(context.Context, leaseholdv1.AdminServiceClient) error

// Dial returns a group at these addresses. One question to one manager may take as long as
// the patience.
func Dial(addrs []string, secured credentials.TransportCredentials, patience time.Duration, options ...grpc.DialOption) (*Group, error) {
	g := &Group{patience: patience}
	// They are killed and started again, and then wanted at once.
	soon := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: time.Second,
	}
	all := append(wire.DialOptions(), grpc.WithTransportCredentials(secured), grpc.WithConnectParams(soon))
	for _, addr := range addrs {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(all, options...)...)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.conns = append(g.conns, conn)
	}
	return g, nil
}

// Close ends all connections.
func (g *Group) Close() {
	for _, conn := range g.conns {
		_ = conn.Close() // whatever was on it has ended
	}
}

// Len is how many there are.
func (g *Group) Len() int { return len(g.conns) }

// At is the manager of an index, for whoever has a patience of his own.
func (g *Group) At(i int) leaseholdv1.AdminServiceClient {
	return leaseholdv1.NewAdminServiceClient(g.conns[i])
}

// Ask puts a question to one manager after the other until one answers, or says no in a way
// that others would say as well.
func (g *Group) Ask(ctx context.Context, question Question, final ...error) error {
	var failed error
	for i := range g.conns {
		err := g.askOne(ctx, i, question)
		if err == nil {
			return nil
		}
		for _, no := range final {
			if errors.Is(err, no) {
				return err
			}
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// AskEach puts a question to all of them, and returns the errors of those who do not answer.
func (g *Group) AskEach(ctx context.Context, question Question) error {
	var failed error
	for i := range g.conns {
		failed = errors.Join(failed, g.askOne(ctx, i, question))
	}
	return failed
}

func (g *Group) askOne(ctx context.Context, i int, question Question) error {
	return g.On(ctx, i, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return question(ctx, leaseholdv1.NewAdminServiceClient(conn))
	})
}

// First asks what listens at these addresses, which need be no manager, until one says yes, and
// returns its index.
func (g *Group) First(ctx context.Context, yes func(context.Context, grpc.ClientConnInterface) error) (int, error) {
	failed := errors.New("nobody says yes")
	for i := range g.conns {
		err := g.On(ctx, i, yes)
		if err == nil {
			return i, nil
		}
		failed = errors.Join(failed, err)
	}
	return 0, failed
}

// On does something with the connection to one of them, as long as the patience allows.
func (g *Group) On(ctx context.Context, i int, do func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	return wire.ToError(do(ctx, g.conns[i]))
}
