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

// The tests tell a story: a gets everything, gives the lower half back, which
// goes to b; then a falls silent, and b gets the upper half too.
const half = leasehold.Key(1 << 63)

var (
	lower = leasehold.Range{Start: 0, Limit: half}
	upper = leasehold.Range{Start: half}

	holderA = &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	holderB = &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b:1", Weight: 1}

	story = []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holderA},
		{LSN: 2, Kind: table.Vacated, Range: lower, Generation: 1, Holder: holderA, Cause: leasehold.CauseReleased},
		{LSN: 3, Kind: table.Granted, Range: lower, Generation: 2, Holder: holderB},
		{LSN: 4, Kind: table.Vacated, Range: upper, Generation: 1, Holder: holderA, Cause: leasehold.CauseExpired},
		{LSN: 5, Kind: table.Granted, Range: upper, Generation: 3, Holder: holderB},
	}

	lossOfLower = leasehold.Loss{Range: lower, Owner: "a", Generation: 1, Cause: leasehold.CauseReleased, LSN: 2, Resume: 2}
	lossOfUpper = leasehold.Loss{Range: upper, Owner: "a", Generation: 1, Cause: leasehold.CauseExpired, LSN: 4, Resume: 4}
)

// after is the table after so many changes.
func after(changes []table.Change, n int) *table.Table {
	t := table.New()
	for i := range changes[:n] {
		if err := t.Apply(&changes[i]); err != nil {
			panic(err)
		}
	}
	return t
}

// A group is managers on a network of their own.
type group struct {
	t  *testing.T
	mu sync.Mutex
	at map[string]*manager
	// conns are all that were made, for forgetConns.
	conns []*fadingConn
}

func newGroup(t *testing.T) *group { return &group{t: t, at: make(map[string]*manager)} }

var errNobodyThere = errors.New("nobody there")

func (g *group) dial(ctx context.Context, addr string) (net.Conn, error) {
	g.mu.Lock()
	m := g.at[addr]
	g.mu.Unlock()
	if m == nil {
		return nil, errNobodyThere
	}
	conn, err := m.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	c := &fadingConn{Conn: conn}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, c)
	return c, nil
}

// addrOf is where a manager listens.
func addrOf(name string) string { return name + ":7400" }

// config is that of a lookup which knows the managers of these names.
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

// open opens a lookup, which the test closes when it ends.
func (g *group) open(cfg lookup.Config) *lookup.Lookup {
	g.t.Helper()
	l, err := lookup.Open(g.t.Context(), cfg)
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

// A manager answers lookups as its script says.
type manager struct {
	leaseholdv1.UnimplementedLookupServiceServer

	addr     string
	changes  []table.Change // the history that it tells
	listener *bufconn.Listener
	server   *grpc.Server

	mu      sync.Mutex
	script  func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse // nil: no answer
	asked   []leasehold.LSN                                              // the LSN of every question
	streams map[grpc.ServerStream]bool
	denies  bool // nobody may follow
	denied  int  // questions
}

// start adds a manager that leads, with the table after n changes of the story.
func (g *group) start(name string, n int) *manager {
	addr := addrOf(name)
	m := &manager{
		addr:     addr,
		changes:  story,
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

// stop takes the manager off the network.
func (g *group) stop(m *manager) {
	g.mu.Lock()
	delete(g.at, m.addr)
	g.mu.Unlock()
	m.server.Stop()
}

// Follow is the service.
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
		if err := m.barred(); err != nil {
			return err
		}
		m.mu.Lock()
		m.streams[stream] = true
		m.asked = append(m.asked, leasehold.LSN(r.GetLsn()))
		if a := m.script(r); a != nil {
			err = stream.SendMsg(a)
		}
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// says replaces the script.
func (m *manager) says(script func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = script
}

func (m *manager) lead(n int) {
	m.says(func(r *leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return m.reply(r.GetSeq(), int(r.GetLsn()), n)
	})
}

// relay makes it a standby that knows the table after n changes of the story, as it was a
// second ago.
func (m *manager) relay(n int) { m.relayOf(n, time.Second) }

// relayOf is the same of some time ago.
func (m *manager) relayOf(n int, age time.Duration) {
	m.says(func(r *leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		a := m.reply(r.GetSeq(), int(r.GetLsn()), n)
		a.GetUpdate().Age, a.GetUpdate().Leads = int64(age), false
		return a
	})
}

func (m *manager) refuse(err error) {
	m.says(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return &leaseholdv1.FollowResponse{
			Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Refusal{Refusal: wire.FromRefusal(err)},
		}
	})
}

func (m *manager) standBy() { m.pointTo("") }

// pointTo makes it a standby that knows nothing but who leads.
func (m *manager) pointTo(leader string) {
	m.says(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse {
		return &leaseholdv1.FollowResponse{
			Version: wire.Version, Kind: &leaseholdv1.FollowResponse_NotLeader{NotLeader: &leaseholdv1.NotLeader{Term: 1, Leader: leader}},
		}
	})
}

func (m *manager) fallSilent() {
	m.says(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse { return nil })
}

// reply brings a lookup from one LSN to another; from 0, by a snapshot.
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

// push sends changes unasked, and leaves the manager at the newer LSN.
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
		t.Errorf("nobody listens to %s", m.addr)
	}
}

// questions returns the LSN of each question since the last call.
func (m *manager) questions() []leasehold.LSN {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	return asked
}

// wantOwner checks what is found for a key, once everything has settled.
func wantOwner(t *testing.T, l *lookup.Lookup, key leasehold.Key, want string) {
	t.Helper()
	synctest.Wait()
	if addr, ok := l.Find(key); addr != want || ok != (want != "") {
		t.Errorf("at lsn %d %v is at %q (%v), want %q", l.LSN(), key, addr, ok, want)
	}
}

// elapse lets virtual time pass.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
