package main

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A renewer is an owner that does nothing but renew, when it is told to. It claims its
// last grant, and has no clock: it serves no calls.
type renewer struct {
	conn    *grpc.ClientConn
	stream  grpc.BidiStreamingClient[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	hangUp  context.CancelFunc
	request protocol.LeaseRequest
}

func newRenewer(ctx context.Context, addr string, as credentials.TransportCredentials, name string, i int) (*renewer, error) {
	session, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	conn, err := proc.Dial(addr, as)
	if err != nil {
		return nil, err
	}
	r := &renewer{conn: conn}
	r.request = protocol.LeaseRequest{
		Namespace: namespace,
		Holder:    &table.Holder{Owner: leasehold.OwnerID(name), Addr: fmt.Sprintf("127.0.0.1:%d", 10_000+i), Session: session, Weight: 1},
	}
	if err := r.open(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// open begins another stream, and ends the last one.
func (r *renewer) open(ctx context.Context) (err error) {
	if r.hangUp != nil {
		r.hangUp()
	}
	ctx, r.hangUp = context.WithCancel(ctx)
	r.stream, err = leaseholdv1.NewOwnerServiceClient(r.conn).Hold(ctx)
	return err
}

const renewLimit = 30 * time.Second

// renew sends requests until it is granted, and returns how long that took. A request
// that crosses with a message of the manager is sent again.
func (r *renewer) renew() (time.Duration, error) {
	begun := time.Now()
	watchdog := time.AfterFunc(renewLimit, r.hangUp) // an error instead of a hang
	defer watchdog.Stop()
	for {
		r.request.Seq++
		// Recv returns why a stream has ended.
		if err := r.stream.Send(wire.FromLeaseRequest(&r.request)); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		answer, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		if answer.GetGrant() == nil {
			return 0, fmt.Errorf("%s was not granted anything: %v", r.request.Holder.Owner, answer)
		}
		reply, err := wire.ToLeaseReply(answer.GetGrant(), protocol.DefaultLimits)
		if err != nil {
			return 0, err
		}
		r.request.Term, r.request.Heard = reply.Term, reply.Seq
		if reply.Echo == r.request.Seq {
			r.apply(reply)
			return time.Since(begun), nil
		}
		time.Sleep(rand.N(5 * time.Millisecond))
	}
}

func (r *renewer) apply(reply *protocol.LeaseReply) {
	r.request.Applied = reply.Seq
	r.request.Leases = r.request.Leases[:0]
	for _, o := range reply.Offers {
		r.request.Leases = append(r.request.Leases, o.Lease)
	}
}

func (r *renewer) close() {
	if r.hangUp != nil {
		r.hangUp()
	}
	_ = r.conn.Close()
}

type renewers []*renewer

// newRenewers lets owners join, and renews until each holds a lease and nothing changes
// any more. With an error it returns those that have joined.
func (s *site) newRenewers(ctx context.Context, m *proc.Managers) (g renewers, err error) {
	for i := range owners {
		var as credentials.TransportCredentials // plain text
		if m == s.guarded {
			if as, err = s.credentials("owner", string(namespace), ownerName(i)); err != nil {
				return g, err
			}
		}
		r, err := newRenewer(ctx, m.Addrs()[0], as, ownerName(i), i)
		if err != nil {
			return g, err
		}
		g = append(g, r)
	}
	const quiet = 20 // rounds of renewals
	deadline := time.Now().Add(time.Minute)
	for same := 0; same < quiet; same++ {
		if time.Now().After(deadline) {
			return g, errors.New("the owners do not settle")
		}
		before := g.held()
		err := proc.Each(len(g), func(i int) error {
			_, err := g[i].renew()
			return err
		})
		if err != nil || ctx.Err() != nil {
			return g, errors.Join(err, ctx.Err())
		}
		if after := g.held(); after != before || after < len(g) {
			same = 0
		}
	}
	return g, nil
}

func (g renewers) held() (n int) {
	for _, r := range g {
		n += len(r.request.Leases)
	}
	return n
}

func (g renewers) close() {
	for _, r := range g {
		r.close()
	}
}
