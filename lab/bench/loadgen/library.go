package loadgen

import (
	"context"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/owner"
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
	Held        int       // valid leases
	Same        int       // owners that hold exactly their leases from the mark, with the same generations
	LastResumed time.Time // of the first resumption of each owner, the last
	// Leases that were suspended, granted and revoked.
	Suspended, Granted, Revoked int
}

// LibraryOwners is the owners of a process. It is exported for net/rpc.
type LibraryOwners struct {
	LibraryConfig
	all []*recordedOwner
}

// A recordedOwner counts the events of an owner since the last mark.
type recordedOwner struct {
	*owner.Owner
	marked []leasehold.Lease

	mu                          sync.Mutex // guards the following
	suspended, granted, revoked int        // leases
	resumedAt                   time.Time  // zero if none was resumed
}

// newLibrary waits until the leader has accepted all owners.
func newLibrary(ctx context.Context, config LibraryConfig) (*LibraryOwners, error) {
	l := &LibraryOwners{LibraryConfig: config}
	var joins []func() error
	for i := range config.Count {
		o := &recordedOwner{}
		l.all = append(l.all, o)
		joins = append(joins, func() error { return l.join(ctx, i, o) })
	}
	return l, startPaced(joins, config.Within)
}

func (l *LibraryOwners) join(ctx context.Context, number int, o *recordedOwner) (err error) {
	addr := ownerAddr(number)
	var listener net.Listener
	if l.Serve {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		addr = listener.Addr().String()
	}
	o.Owner, err = owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(l.Namespace), Managers: l.Managers, Name: ownerName(l.Name, number), Addr: addr,
		OnSuspend: o.count(&o.suspended), OnGrant: o.count(&o.granted), OnResume: o.resumed,
		OnRevoke: func(leases []leasehold.Lease, _ leasehold.Cause) { o.count(&o.revoked)(leases) },
	})
	if err != nil || !l.Serve {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Server", &OwnedService{o.Owner}); err != nil {
		return err
	}
	go server.Accept(listener)
	return nil
}

// count returns a callback that adds leases to a counter.
func (o *recordedOwner) count(counter *int) func([]leasehold.Lease) {
	return func(leases []leasehold.Lease) {
		o.mu.Lock()
		defer o.mu.Unlock()
		*counter += len(leases)
	}
}

func (o *recordedOwner) resumed([]leasehold.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resumedAt.IsZero() {
		o.resumedAt = time.Now()
	}
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

// Mark records the leases of all owners, and resets the counters.
func (l *LibraryOwners) Mark(struct{}, *struct{}) error {
	for _, o := range l.all {
		o.marked = o.Leases()
		o.mu.Lock()
		o.suspended, o.granted, o.revoked, o.resumedAt = 0, 0, 0, time.Time{}
		o.mu.Unlock()
	}
	return nil
}

// Report returns the report.
func (l *LibraryOwners) Report(_ struct{}, out *Report) error {
	for _, o := range l.all {
		o.add(out)
	}
	return nil
}

func (o *recordedOwner) add(out *Report) {
	leases := o.Leases()
	out.Held += len(leases)
	if len(leases) > 0 && slices.Equal(leases, o.marked) {
		out.Same++
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.resumedAt.After(out.LastResumed) {
		out.LastResumed = o.resumedAt
	}
	out.Suspended += o.suspended
	out.Granted += o.granted
	out.Revoked += o.revoked
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
