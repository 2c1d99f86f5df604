package procsim

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// lie sends requests of a lookup, which may only read, with a plausible term and LSN that do not exist. Nothing is excused.
func (w *world) lie() string {
	s := pick(w.random, w.spaces...)
	_, term := w.operator.status()
	r := &leaseholdv1.FollowRequest{
		Version: wire.Version, Namespace: string(s.name), Seq: 1,
		Term: term + pick[uint64](w.random, 0, 1, 5, 1000, 1e5, 1e8), Lsn: pick[uint64](w.random, 0, 1, 1000, 1<<30, 1<<50),
	}
	if r.Lsn > 0 {
		r.Lsn += uint64(s.newestLSN())
	}
	m := w.anyManager()
	if m == nil {
		return ""
	}
	times := 1 + w.random.IntN(30)
	w.spawn(func() { w.follow(m.addr(), r, times) })
	if v := w.anyServer(); v != nil && w.random.IntN(2) == 0 { // others get its keys at once
		w.after(2*time.Second, func() {
			if v.up() != nil {
				w.leave(v, w.span(8*time.Second, time.Minute))
			}
		})
	}
	return fmt.Sprintf("to %s, %d times: {%v}", m.name, times, r)
}

// follow sends a request once a second.
func (w *world) follow(to string, r *leaseholdv1.FollowRequest, times int) {
	conn, err := grpc.NewClient("passthrough:///"+to, append(wire.DialOptions(), dialer(w.net.Host("liar"))...)...)
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(times)*time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
	for ; err == nil && ctx.Err() == nil; time.Sleep(time.Second) {
		r.Seq++
		err = stream.Send(r)
	}
}
