package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/credentials/insecure"

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
	// Host is the IP address at which they serve, on a network that is trusted; empty: loopback.
	Host string
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
		if listener, err = net.Listen("tcp", net.JoinHostPort(cmp.Or(l.Host, "127.0.0.1"), "0")); err != nil {
			return err
		}
		addr = listener.Addr().String()
	}
	config := owner.Config{
		Namespace: leasehold.Namespace(l.Namespace), Managers: l.Managers, Name: ownerName(l.Name, number), Addr: addr,
		OnSuspend: o.count(&o.suspended), OnGrant: o.count(&o.granted), OnResume: o.resumed,
		OnRevoke: func(leases []leasehold.Lease, _ leasehold.Cause) { o.count(&o.revoked)(leases) },
	}
	if l.Host != "" {
		config.Credentials = insecure.NewCredentials()
	}
	if o.Owner, err = owner.Join(ctx, config); err != nil || !l.Serve {
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
func Owned(c *rpc.Client, key leasehold.Key, limit time.Duration) (bool, error) {
	owned := new(bool)
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case call := <-c.Go("Server.Owned", uint64(key), owned, make(chan *rpc.Call, 1)).Done:
		return *owned, call.Error
	case <-timeout.C:
		return false, fmt.Errorf("no reply within %v", limit)
	}
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

// StartLibraries is StartLibrary for n processes, each with a supervisor if there is one.
func StartLibraries(ctx context.Context, n int, config func(i int) LibraryConfig, how proc.How) (proc.Group, error) {
	return proc.StartGroupAs(ctx, roleLibrary, n, func(i int) any { return config(i) }, how)
}

// Crashes of a process.
const (
	Panic       = "panic"
	Exit        = "exit"
	OutOfMemory = "out-of-memory"
)

// A Crash is a way to end a process.
type Crash struct {
	How string
	// Group is a memory cgroup with a limit, for OutOfMemory: that of the process and its supervisor.
	Group string
}

// Crash ends the process. It returns only if that fails.
func (*LibraryOwners) Crash(c Crash, _ *struct{}) error {
	switch c.How {
	case Panic:
		panic("a crash on purpose")
	case Exit:
		os.Exit(1)
	}
	for _, pid := range []int{os.Getppid(), os.Getpid()} {
		if err := os.WriteFile(filepath.Join(c.Group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return err
		}
	}
	return exhaust()
}

// exhaust allocates memory until the kernel kills the process.
func exhaust() error {
	const chunk, most = 1 << 20, 1 << 10
	var all [most][]byte
	for i := range all {
		all[i] = make([]byte, chunk)
		for at := 0; at < chunk; at += os.Getpagesize() {
			all[i][at] = 1
		}
	}
	return fmt.Errorf("not killed: %d bytes were allocated", len(all)*chunk)
}
