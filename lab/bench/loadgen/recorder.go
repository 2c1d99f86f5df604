package loadgen

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A recorder measures one owner: by its messages, and by the callbacks of the library. It is safe for concurrent use.
type recorder struct {
	mu sync.Mutex

	term     uint64 // the newest that a reply had
	seq      uint64 // of the newest request
	newest   Renewal
	answered bool  // the newest request was answered
	since    int64 // the first request since the last one that was answered; nanoseconds since 1970

	// The following are since the last mark.
	markedTerm uint64
	renewedAt  time.Time // the first reply of a later term than at the mark
	resumedAt  time.Time
	suspended, resumed,
	granted, revoked int // leases
	renewals []Renewal
}

// A Renewal is a request of an owner and its reply.
type Renewal struct {
	Sent int64 `json:"s"` // nanoseconds since 1970
	// Latency is the time to the reply, from the first request since the last one that was
	// answered; 0 if no reply came before the next request was sent.
	Latency time.Duration `json:"l,omitempty"`
	// Suspended: the request claimed suspended leases. A leader may answer it later on purpose.
	Suspended bool `json:"p,omitempty"`
}

// mark starts the measurements again.
func (r *recorder) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.markedTerm = r.term
	r.renewedAt, r.resumedAt = time.Time{}, time.Time{}
	r.suspended, r.resumed, r.granted, r.revoked = 0, 0, 0, 0
	r.renewals = nil
}

// request records a request. The same request may be sent to several managers.
func (r *recorder) request(now time.Time, seq uint64, suspended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq <= r.seq {
		return
	}
	if r.seq != 0 && !r.answered {
		r.renewals = append(r.renewals, r.newest)
	}
	if r.seq == 0 || r.answered {
		r.since = now.UnixNano()
	}
	r.seq, r.newest, r.answered = seq, Renewal{Sent: now.UnixNano(), Suspended: suspended}, false
}

// reply records the first reply to the newest request. Replies to older requests renew nothing.
func (r *recorder) reply(now time.Time, term, echo uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = max(r.term, term)
	if echo != r.seq || r.answered {
		return
	}
	r.answered = true
	r.newest.Latency = max(1, time.Duration(now.UnixNano()-r.since))
	r.renewals = append(r.renewals, r.newest)
	if r.renewedAt.IsZero() && term > r.markedTerm {
		r.renewedAt = now
	}
}

func (r *recorder) onSuspend(leases []leasehold.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspended += len(leases)
}

func (r *recorder) onResume(leases []leasehold.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resumed += len(leases)
	if r.resumedAt.IsZero() {
		r.resumedAt = time.Now()
	}
}

func (r *recorder) onGrant(leases []leasehold.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted += len(leases)
}

func (r *recorder) onRevoke(leases []leasehold.Lease, _ leasehold.Cause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked += len(leases)
}

// intercept records the messages of every stream.
func (r *recorder) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	return &recordedStream{stream, r}, nil
}

type recordedStream struct {
	grpc.ClientStream
	recorder *recorder
}

func (s *recordedStream) SendMsg(m any) error {
	if request, ok := m.(*leaseholdv1.HoldRequest); ok {
		s.recorder.request(time.Now(), request.GetSeq(), request.GetSuspended())
	}
	return s.ClientStream.SendMsg(m)
}

func (s *recordedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if response, ok := m.(*leaseholdv1.HoldResponse); ok && err == nil {
		if grant := response.GetGrant(); grant != nil {
			s.recorder.reply(time.Now(), grant.GetTerm(), grant.GetEcho())
		}
	}
	return err
}
