package lookup_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The history of the tests: a is granted the whole key space and releases the lower half, which
// is granted to b; then the lease of a expires, and the upper half is granted to b.
const half = leasehold.Key(1 << 63)

var (
	lower = leasehold.Range{Start: 0, Limit: half}
	upper = leasehold.Range{Start: half}

	holderA = &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	holderB = &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b:1", Weight: 1}

	history = []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holderA},
		{LSN: 2, Kind: table.Vacated, Range: lower, Generation: 1, Holder: holderA, Cause: leasehold.CauseReleased},
		{LSN: 3, Kind: table.Granted, Range: lower, Generation: 2, Holder: holderB},
		{LSN: 4, Kind: table.Vacated, Range: upper, Generation: 1, Holder: holderA, Cause: leasehold.CauseExpired},
		{LSN: 5, Kind: table.Granted, Range: upper, Generation: 3, Holder: holderB},
	}

	lossOfLower = leasehold.Loss{Range: lower, Owner: "a", Generation: 1, Cause: leasehold.CauseReleased, LSN: 2, Resume: 2}
	lossOfUpper = leasehold.Loss{Range: upper, Owner: "a", Generation: 1, Cause: leasehold.CauseExpired, LSN: 4, Resume: 4}
)

// after returns the table after n changes.
func after(changes []table.Change, n int) *table.Table {
	t := table.New()
	for i := range changes[:n] {
		if err := t.Apply(&changes[i]); err != nil {
			panic(err)
		}
	}
	return t
}

// A group is a set of managers on an in-memory network.
type group struct {
	t  *testing.T
	mu sync.Mutex
	at map[string]*manager
	// conns are all connections, for blackholeConns.
	conns []*blackholeConn
}

func newGroup(t *testing.T) *group { return &group{t: t, at: make(map[string]*manager)} }

var errUnreachable = errors.New("host is unreachable")

func (g *group) dial(ctx context.Context, addr string) (net.Conn, error) {
	g.mu.Lock()
	m := g.at[addr]
	g.mu.Unlock()
	if m == nil {
		return nil, errUnreachable
	}
	conn, err := m.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	c := &blackholeConn{Conn: conn}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, c)
	return c, nil
}

// addrOf returns the address of a manager.
func addrOf(name string) string { return name + ":7400" }

// config returns the configuration of a lookup of these managers.
func (g *group) config(managers ...string) lookup.Config {
	var addrs []string
	for _, name := range managers {
		addrs = append(addrs, addrOf(name))
	}
	return lookup.Config{
		Namespace:   "n",
		Managers:    addrs,
		Credentials: insecure.NewCredentials(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(g.dial)},
	}
}

// open opens a lookup and closes it at the end of the test.
func (g *group) open(cfg lookup.Config) *lookup.Lookup {
	g.t.Helper()
	l, err := lookup.Open(g.t.Context(), cfg)
	return g.opened(l, err)
}

// openSeeded is open with a seed for the random choices of the lookup.
func (g *group) openSeeded(cfg lookup.Config, seed uint64) *lookup.Lookup {
	g.t.Helper()
	l, err := lookup.OpenSeeded(g.t.Context(), cfg, seed)
	return g.opened(l, err)
}

func (g *group) opened(l *lookup.Lookup, err error) *lookup.Lookup {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			g.t.Error(err)
		}
	})
	return l
}

// A manager replies to lookups by a script.
type manager struct {
	leaseholdv1.UnimplementedLookupServiceServer

	addr     string
	changes  []table.Change // history by default
	listener *bufconn.Listener
	server   *grpc.Server

	mu      sync.Mutex
	script  func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse // nil: no reply
	lsns    []leasehold.LSN                                              // of the requests
	streams map[grpc.ServerStream]bool
	denies  bool // all requests
	denied  int  // number of denied requests
}

// start starts a leader with the table after n changes of the history.
func (g *group) start(name string, n int) *manager {
	addr := addrOf(name)
	m := &manager{
		addr:     addr,
		changes:  history,
		listener: bufconn.Listen(1 << 20),
		server:   grpc.NewServer(wire.ServerOptions()...),
		streams:  make(map[grpc.ServerStream]bool),
	}
	m.lead(n)
	leaseholdv1.RegisterLookupServiceServer(m.server, m)
	var serving sync.WaitGroup
	serving.Go(func() { _ = m.server.Serve(m.listener) }) // until it is stopped
	g.mu.Lock()
	g.at[addr] = m
	g.mu.Unlock()
	g.t.Cleanup(func() {
		m.server.Stop()
		serving.Wait()
	})
	return m
}

// stop stops the manager and removes it from the network.
func (g *group) stop(m *manager) {
	g.mu.Lock()
	delete(g.at, m.addr)
	g.mu.Unlock()
	m.server.Stop()
}

// Follow implements the lookup service.
func (m *manager) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.streams, stream)
	}()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := m.checkAccess(); err != nil {
			return err
		}
		m.mu.Lock()
		m.streams[stream] = true
		m.lsns = append(m.lsns, leasehold.LSN(r.GetLsn()))
		if a := m.script(r); a != nil {
			err = stream.SendMsg(a)
		}
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// respond sets the script.
func (m *manager) respond(script func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = script
}

func (m *manager) lead(n int) {
	m.respond(func(r *leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return m.reply(r.GetSeq(), int(r.GetLsn()), n)
	})
}

// relay makes the manager a standby with the table after n changes of the history, one second old.
func (m *manager) relay(n int) { m.relayOf(n, time.Second) }

// relayOf makes the manager a standby with a table of the given age.
func (m *manager) relayOf(n int, age time.Duration) {
	m.respond(func(r *leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		a := m.reply(r.GetSeq(), int(r.GetLsn()), n)
		a.GetUpdate().Age, a.GetUpdate().Leads = int64(age), false
		return a
	})
}

func (m *manager) refuse(err error) {
	m.respond(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return &leaseholdv1.FollowResponse{
			Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Refusal{Refusal: wire.FromRefusal(err)},
		}
	})
}

func (m *manager) standbyWithoutTable() { m.redirectTo("") }

// redirectTo makes the manager a standby without a table, which redirects to a leader.
func (m *manager) redirectTo(leader string) {
	m.respond(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return &leaseholdv1.FollowResponse{
			Version: wire.Version, Kind: &leaseholdv1.FollowResponse_NotLeader{NotLeader: &leaseholdv1.NotLeader{Term: 1, Leader: leader}},
		}
	})
}

func (m *manager) stopReplying() {
	m.respond(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse { return nil })
}

// reply contains the changes between two LSNs, or a snapshot if from is 0.
func (m *manager) reply(echo uint64, from, to int) *leaseholdv1.FollowResponse {
	r := &protocol.LookupReply{
		Namespace: "n", Leader: storage.ManagerID(m.addr), Leads: true, Term: 1, Echo: protocol.Seq(echo), LSN: leasehold.LSN(to),
	}
	switch {
	case from == 0 && to > 0:
		r.Snapshot = after(m.changes, to)
	case from < to:
		r.From, r.Changes = leasehold.LSN(from), m.changes[from:to]
	}
	return wire.FromLookupReply(r)
}

// push broadcasts changes and makes the manager a leader at the newer LSN.
func (m *manager) push(t *testing.T, from, to int) {
	t.Helper()
	m.lead(to)
	m.send(t, m.reply(0, from, to))
}

func (m *manager) send(t *testing.T, a *leaseholdv1.FollowResponse) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for stream := range m.streams {
		if err := stream.SendMsg(a); err != nil {
			t.Error(err)
		}
	}
	if len(m.streams) == 0 {
		t.Errorf("manager %s has no streams", m.addr)
	}
}

// requests returns the LSN of each request since the last call.
func (m *manager) requests() []leasehold.LSN {
	m.mu.Lock()
	defer m.mu.Unlock()
	lsns := m.lsns
	m.lsns = nil
	return lsns
}

// wantOwner checks the address of a key after all goroutines are idle.
func wantOwner(t *testing.T, l *lookup.Lookup, key leasehold.Key, want string) {
	t.Helper()
	synctest.Wait()
	if addr, ok := l.Find(key); addr != want || ok != (want != "") {
		t.Errorf("at lsn %d the address of %v is %q (%v), want %q", l.LSN(), key, addr, ok, want)
	}
}

// elapse waits for d of virtual time, and until all goroutines are idle.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
