package loadgen

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// LibraryConfig configures owners of the library in one process.
type LibraryConfig struct {
	ClientsConfig
	Name  string // prefix of the owners' names
	Count int
	// Within is the time in which the owners join, at equal intervals.
	Within time.Duration
	// Serve makes each owner serve calls of [Owned].
	Serve bool
}

// A Report is the state of all owners, and the events since the last mark.
type Report struct {
	Held    int // valid leases
	Same    int // owners that hold exactly their leases from the mark, with the same generations
	Renewed int // owners that received a reply of a leader with a later term
	// LastRenewed and LastResumed are the times of the last such reply and of the last resumption.
	LastRenewed, LastResumed time.Time
	// Leases that were suspended, resumed, granted and revoked.
	Suspended, Resumed, Granted, Revoked int
	Renewals                             []Renewal
}

// LibraryOwners is the owners of a process. It is exported for net/rpc.
type LibraryOwners struct {
	LibraryConfig
	all []*recordedOwner
}

type recordedOwner struct {
	recorder
	*owner.Owner
	marked []leasehold.Lease
}

// newLibrary waits until the leader has accepted all owners.
func newLibrary(ctx context.Context, config LibraryConfig) (*LibraryOwners, error) {
	l := &LibraryOwners{LibraryConfig: config}
	var joins []func() error
	for i := range config.Count {
		m := &recordedOwner{}
		l.all = append(l.all, m)
		joins = append(joins, func() error { return l.join(ctx, i, m) })
	}
	return l, startPaced(joins, config.Within)
}

func (l *LibraryOwners) join(ctx context.Context, number int, m *recordedOwner) (err error) {
	addr := ownerAddr(number)
	var listener net.Listener
	if l.Serve {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		addr = listener.Addr().String()
	}
	m.Owner, err = owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(l.Namespace), Managers: l.Managers,
		Name: leasehold.OwnerID(fmt.Sprintf("%s-%05d", l.Name, number)), Addr: addr,
		OnSuspend: m.count(&m.suspended), OnResume: m.count(&m.resumed), OnGrant: m.count(&m.granted),
		OnRevoke:    func(leases []leasehold.Lease, _ leasehold.Cause) { m.count(&m.revoked)(leases) },
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(m.intercept)},
	})
	if err != nil || !l.Serve {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Server", &OwnedService{m.Owner}); err != nil {
		return err
	}
	go server.Accept(listener)
	return nil
}

// OwnedService serves calls of [Owned]. It is exported for net/rpc.
type OwnedService struct{ owner *owner.Owner }

// Owned reports whether the owner holds a key.
func (s *OwnedService) Owned(key uint64, owned *bool) error {
	_, *owned = s.owner.Check(leasehold.Key(key))
	return nil
}

// Owned calls a server, and reports whether it owns a key.
func Owned(c *rpc.Client, key leasehold.Key) (owned bool, err error) {
	err = c.Call("Server.Owned", uint64(key), &owned)
	return owned, err
}

// Mark records the leases of all owners, and resets the measurements.
func (l *LibraryOwners) Mark(struct{}, *struct{}) error {
	for _, m := range l.all {
		m.marked = m.Leases()
		m.mark()
	}
	return nil
}

// Report returns the report, optionally with all renewals.
func (l *LibraryOwners) Report(renewals bool, out *Report) error {
	for _, m := range l.all {
		m.add(out, renewals)
	}
	return nil
}

func (m *recordedOwner) add(out *Report, renewals bool) {
	leases := m.Leases()
	out.Held += len(leases)
	if len(leases) > 0 && slices.Equal(leases, m.marked) {
		out.Same++
	}
	r := &m.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.renewedAt.IsZero() {
		out.Renewed++
	}
	out.LastRenewed, out.LastResumed = later(out.LastRenewed, r.renewedAt), later(out.LastResumed, r.resumedAt)
	out.Suspended += r.suspended
	out.Resumed += r.resumed
	out.Granted += r.granted
	out.Revoked += r.revoked
	if renewals {
		out.Renewals = append(out.Renewals, r.renewals...)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Close drains all owners.
func (l *LibraryOwners) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndLimit)
	defer cancel()
	return proc.Each(len(l.all), func(i int) error { return l.all[i].Owner.Close(ctx) })
}

// StartLibrary starts a process of [LibraryOwners], and returns when all have joined.
func StartLibrary(ctx context.Context, config LibraryConfig) (*proc.Process, error) {
	return proc.Start(ctx, roleLibrary, config)
}

// A recorder measures one owner, from its messages and callbacks. It is safe for concurrent use.
type recorder struct {
	mu sync.Mutex

	term     uint64 // the newest term in a reply
	seq      uint64 // of the newest request
	newest   Renewal
	answered bool  // the newest request has a reply
	since    int64 // the first request since the last reply; nanoseconds since 1970

	// Since the last mark:
	markedTerm uint64
	renewedAt  time.Time // the first reply with a later term than at the mark
	resumedAt  time.Time
	suspended, resumed,
	granted, revoked int // leases
	renewals []Renewal
}

// A Renewal is a request of an owner and its reply.
type Renewal struct {
	Sent int64 `json:"s"` // nanoseconds since 1970
	// Latency is the time from the first request since the last reply to the reply; 0 if
	// the next request was sent before a reply.
	Latency time.Duration `json:"l,omitempty"`
	// Suspended: the request claimed suspended leases. A leader may delay its reply.
	Suspended bool `json:"p,omitempty"`
}

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

// reply records the first reply to the newest request. Replies to older requests do not renew.
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

// count returns a callback that adds leases to a counter.
func (r *recorder) count(counter *int) func([]leasehold.Lease) {
	return func(leases []leasehold.Lease) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*counter += len(leases)
		if counter == &r.resumed && r.resumedAt.IsZero() {
			r.resumedAt = time.Now()
		}
	}
}

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
