package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	random "math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A renewer is an owner that does nothing but renew, when it is told to. It says what it was
// last granted, and has no clock: it serves nobody.
type renewer struct {
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	hangUp context.CancelFunc
	says   protocol.LeaseRequest
}

func newRenewer(ctx context.Context, addr string, as credentials.TransportCredentials, name string, i int) (*renewer, error) {
	conn, err := dial(addr, as)
	if err != nil {
		return nil, err
	}
	r := &renewer{conn: conn}
	if err := r.again(ctx); err != nil {
		r.close()
		return nil, err
	}
	var session leasehold.Session
	_, _ = rand.Read(session[:]) // it never fails
	r.says = protocol.LeaseRequest{
		Namespace: namespace,
		Holder:    &table.Holder{Owner: leasehold.OwnerID(name), Addr: fmt.Sprintf("127.0.0.1:%d", 10_000+i), Session: session, Weight: 1},
	}
	return r, nil
}

// again begins another stream. What came of the last one does not matter.
func (r *renewer) again(ctx context.Context) (err error) {
	if r.hangUp != nil {
		r.hangUp()
	}
	ctx, r.hangUp = context.WithCancel(ctx)
	r.stream, err = leaseholdv1.NewOwnerServiceClient(r.conn).Hold(ctx)
	return err
}

// say sends a request.
func (r *renewer) say() error {
	r.says.Seq++
	err := r.stream.Send(wire.FromLeaseRequest(&r.says))
	if errors.Is(err, io.EOF) {
		_, err = r.stream.Recv() // says why
	}
	return err
}

// renew asks until it is granted, and returns how long that took. What crosses with a message
// of the manager's must be asked again.
func (r *renewer) renew() (time.Duration, error) {
	begun := time.Now()
	if err := r.say(); err != nil {
		return 0, err
	}
	for {
		answer, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		if answer.GetGrant() == nil {
			return 0, fmt.Errorf("%s was not granted anything: %v", r.says.Holder.Owner, answer)
		}
		reply, err := wire.ToLeaseReply(answer.GetGrant(), protocol.DefaultLimits)
		if err != nil {
			return 0, err
		}
		r.take(reply)
		if reply.Echo == r.says.Seq {
			return time.Since(begun), nil
		}
		time.Sleep(random.N(5 * time.Millisecond))
		if err := r.say(); err != nil {
			return 0, err
		}
	}
}

// take takes what is offered, unless it crossed with what was said.
func (r *renewer) take(reply *protocol.LeaseReply) {
	r.says.Term, r.says.Heard = reply.Term, reply.Seq
	if reply.Echo != r.says.Seq {
		return
	}
	r.says.Applied = reply.Seq
	r.says.Leases = r.says.Leases[:0]
	for _, o := range reply.Offers {
		r.says.Leases = append(r.says.Leases, o.Lease)
	}
}

func (r *renewer) close() {
	r.hangUp()
	_ = r.conn.Close()
}

// A guild is many renewers of one manager.
type guild []*renewer

// newGuild lets owners join.
func newGuild(ctx context.Context, addr string, n int, as func(i int) (credentials.TransportCredentials, error)) (g guild, err error) {
	for i := range n {
		credentials, err := as(i)
		if err != nil {
			return g, err
		}
		r, err := newRenewer(ctx, addr, credentials, owner(i), i)
		if err != nil {
			return g, err
		}
		g = append(g, r)
	}
	return g, nil
}

func (g guild) close() {
	for _, r := range g {
		r.close()
	}
}

// each lets all of them do something at a time, and returns what went wrong first.
func (g guild) each(do func(i int, r *renewer) error) error {
	errs := make(chan error, len(g))
	for i, r := range g {
		go func() { errs <- do(i, r) }()
	}
	var first error
	for range g {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// settle renews until everybody holds something and nothing changes any more.
func (g guild) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for same := 0; same < 20; {
		if ctx.Err() != nil {
			return errors.New("the owners do not settle")
		}
		before := g.held()
		if err := g.each(func(_ int, r *renewer) error { _, err := r.renew(); return err }); err != nil {
			return err
		}
		if after := g.held(); after == before && after >= len(g) {
			same++
		} else {
			same = 0
		}
	}
	return nil
}

func (g guild) held() (n int) {
	for _, r := range g {
		n += len(r.says.Leases)
	}
	return n
}
