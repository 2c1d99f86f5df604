package diskless_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/diskless"
	"github.com/leasehold-dev/leasehold/internal/machine/appointment"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const longest = 12 * time.Second

// A hall is where managers of a group, or of several, meet.
type hall struct {
	t   *testing.T
	net flease.Memory

	mu   sync.Mutex
	at   map[storage.ManagerID]*bufconn.Listener
	deaf map[storage.ManagerID]bool // nobody answers its calls
	logs strings.Builder
}

// A seat is a manager in it.
type seat struct {
	*diskless.Group
	hall   *hall
	id     storage.ManagerID
	clock  *clock.Clock
	server *grpc.Server

	mu    sync.Mutex
	heard []appointment.Event
	term  leasehold.Term // 0 while it does not lead
	until mono.Instant
	rank  leasehold.Term // that another has heard of
}

func inHall(t *testing.T, test func(t *testing.T, h *hall)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &hall{t: t, at: map[storage.ManagerID]*bufconn.Listener{}, deaf: map[storage.ManagerID]bool{}})
	})
}

// Write takes what the managers log.
func (h *hall) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs.Write(line)
}

func (h *hall) logged(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.logs.String(), what)
}

func ids(n int) (out []diskless.Peer) {
	for i := range n {
		out = append(out, diskless.Peer{Manager: storage.ManagerID(fmt.Sprintf("m%d:7400", i)), Addr: fmt.Sprintf("m%d:7400", i)})
	}
	return out
}

// enter starts a manager of a group of three.
func (h *hall) enter(i int, change ...func(*diskless.Config)) *seat {
	h.t.Helper()
	s := &seat{hall: h, clock: clock.New()}
	cfg := diskless.Config{
		Self: ids(3)[i].Manager, Peers: ids(3), Transport: &h.net, Secure: true,
		Lease: 2 * time.Second, Epsilon: 200 * time.Millisecond, Drift: 1.2, Longest: longest,
		Clock: s.clock, Logger: slog.New(slog.NewTextHandler(h, nil)), Hear: s.hear, Outranked: s.outranked,
	}
	for _, c := range change {
		c(&cfg)
	}
	s.id = cfg.Self
	cfg.Dial = func(to storage.ManagerID) (*grpc.ClientConn, error) { return h.dial(s.id, to) }
	g, err := diskless.Start(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	s.Group = g
	s.server = grpc.NewServer(wire.ServerOptions()...)
	g.Register(s.server)
	listener := bufconn.Listen(1 << 16)
	h.mu.Lock()
	h.at[s.id] = listener
	h.mu.Unlock()
	go func() { _ = s.server.Serve(listener) }()
	h.t.Cleanup(s.leave)
	return s
}

func (h *hall) dial(from, id storage.ManagerID) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+string(id), append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			h.mu.Lock()
			l := h.at[storage.ManagerID(addr)]
			deaf := h.deaf[from]
			h.mu.Unlock()
			if l == nil || deaf {
				return nil, errors.New("nobody listens")
			}
			return l.DialContext(ctx)
		}))...)
}

func (s *seat) hear(e appointment.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case appointment.Appointed:
		s.term, s.until = e.Term, e.Until
	case appointment.Extended:
		s.until = e.Until
	case appointment.Dismissed:
		if s.term != 0 {
			s.StepDown(s.term, 0) // as the machine has it done
		}
		s.term = 0
	}
	s.heard = append(s.heard, e)
}

func (s *seat) outranked(by leasehold.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rank = by
}

// leads returns the term in which it leads, and for how much longer; 0 if it does not.
func (s *seat) leads() (leasehold.Term, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.until.Sub(s.clock.Now())
	if left <= 0 {
		return 0, 0
	}
	return s.term, left
}

// stepDown gives up what it leads by, and waits until it is told that it has.
func (s *seat) stepDown() {
	s.hall.t.Helper()
	term, _ := s.leads()
	s.StepDown(term, 0)
	for range 1000 {
		time.Sleep(time.Millisecond)
		if now, _ := s.leads(); now != term {
			return
		}
	}
	s.hall.t.Fatal("it has not given up its lease")
}

func (s *seat) leave() {
	s.hall.mu.Lock()
	if s.hall.at[s.id] != nil {
		delete(s.hall.at, s.id)
	}
	s.hall.mu.Unlock()
	s.server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx)
}

// leader waits until one of them leads, and knows the catalog.
func (h *hall) leader(seats ...*seat) (*seat, *storage.Catalog) {
	h.t.Helper()
	s, c := h.leaderWithin(2*time.Minute, seats...)
	if s == nil {
		h.t.Fatal("nobody leads")
	}
	return s, c
}

// leaderWithin is leader for those who expect that there may be none.
func (h *hall) leaderWithin(d time.Duration, seats ...*seat) (*seat, *storage.Catalog) {
	h.t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var found []*seat
		for _, s := range seats {
			if term, _ := s.leads(); term != 0 {
				found = append(found, s)
			}
		}
		if len(found) > 1 {
			h.t.Fatalf("%d managers lead", len(found))
		}
		if len(found) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		c, err := found[0].Catalog(ctx)
		cancel()
		if err == nil {
			return found[0], c
		}
	}
	return nil, nil
}

func with(c *storage.Catalog, names ...leasehold.Namespace) *storage.Catalog {
	next := *c
	next.Namespaces = nil
	for _, name := range names {
		next.Namespaces = append(next.Namespaces, storage.Namespace{Name: name, Lease: time.Second})
	}
	return &next
}

func names(c *storage.Catalog) (out []leasehold.Namespace) {
	for _, n := range c.Namespaces {
		out = append(out, n.Name)
	}
	return out
}

// A catalog that was written is there whoever leads next; a new group waits, and says
// why; the others know who leads.
func TestCatalogOutlivesLeaders(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		begun := time.Now()
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, c := h.leader(seats...)
		if took := time.Since(begun); took < longest || !h.logged("too few managers remember") {
			t.Errorf("a new group leads after %v, or does not say what it waits for", took)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "a", "b")); o != storage.Done || err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "c")); o != storage.Conflict || err != nil {
			t.Errorf("a write on top of what is not there any more: %v, %v", o, err)
		}
		for _, s := range seats {
			heard := slices.ContainsFunc(s.heard, func(e appointment.Event) bool {
				l, ok := e.(appointment.Leads)
				return ok && l.Manager == leader.id
			})
			if heard == (s == leader) {
				t.Errorf("that %s was told who leads is %v", s.id, heard)
			}
			if s != leader {
				if _, err := s.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.NotLeader {
					t.Errorf("the catalog of one who does not lead: %v", err)
				}
			}
		}
		for round := range 4 {
			term, _ := leader.leads()
			leader.stepDown()
			before := leader
			next, c := h.leader(seats...)
			if got := names(c); !slices.Equal(got, []leasehold.Namespace{"a", "b"}) {
				t.Fatalf("round %d: the namespaces are %v", round, got)
			}
			if now, _ := next.leads(); now <= term {
				t.Errorf("the term was %d, and is %d", term, now)
			}
			if round%2 == 1 && before != next { // a restart forgets, and is told again
				before.leave()
				i := slices.Index(seats, before)
				seats[i] = h.enter(i)
				time.Sleep(5 * time.Second)
			}
			leader, _ = h.leader(seats...)
		}
	})
}

// A leader is told of every renewal in time, and is told that it leads for no longer
// than it does: others that hear nothing from it take over after that.
func TestAuthority(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		term, _ := leader.leads()
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			now, left := leader.leads()
			if now != term || left < 500*time.Millisecond || left > 2*time.Second {
				t.Fatalf("it leads in term %d for another %v", now, left)
			}
		}
		leader.Resign() // that alone gives up nothing
		time.Sleep(5 * time.Second)
		if now, _ := leader.leads(); now != term {
			t.Error("it has given up the lease by which it still leads")
		}
		leader.stepDown()
		if _, err := leader.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.NotLeader {
			t.Errorf("who leads no more has a catalog: %v", err)
		}
		if _, err := leader.Load(t.Context(), "x"); leasehold.KindOf(err) != leasehold.NotLeader {
			t.Errorf("who leads no more has a table: %v", err)
		}
		next, c := h.leader(seats...)
		if next == leader {
			t.Error("who has resigned leads again")
		}
		next.StepDown(term, 0) // that of another, from before
		time.Sleep(5 * time.Second)
		if now, _ := next.leads(); now <= term {
			t.Error("it has given up a lease that nobody wants it to")
		}
		c.Term = term
		if o, err := next.SaveCatalog(t.Context(), with(c, "late")); o != storage.Conflict || err != nil {
			t.Errorf("a write of an earlier term: %v, %v", o, err)
		}
	})
}

// A manager says when the group can do without another: not before it votes, and not
// before it knows the namespaces.
func TestInformed(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		i := slices.IndexFunc(seats, func(s *seat) bool { return s != leader })
		seats[i].leave()
		again := h.enter(i)
		time.Sleep(2 * time.Second) // it has been told the namespaces, and still keeps silent
		if again.Informed() {
			t.Error("it does not vote, and says that it does")
		}
		time.Sleep(time.Second)
		if !again.Informed() || !leader.Informed() {
			t.Error("it votes, and knows the namespaces, and does not say so")
		}
	})
	inHall(t, func(t *testing.T, h *hall) {
		alone := h.enter(0)
		time.Sleep(time.Minute)
		if alone.Informed() {
			t.Error("it knows no namespaces, and says that it does")
		}
	})
}

// Who waits for the catalog is told when it cannot be had any more. What is too large
// to be sent is refused.
func TestCatalogThatIsNotThere(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1)} // the third may know something
		time.Sleep(30 * time.Second)
		i := slices.IndexFunc(seats, func(s *seat) bool { term, _ := s.leads(); return term != 0 })
		if i < 0 {
			t.Fatal("nobody leads")
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := seats[i].Catalog(ctx); leasehold.KindOf(err) != leasehold.Unavailable || time.Since(begun) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := seats[i].Catalog(t.Context())
			failed <- err
		}()
		synctest.Wait()
		seats[i].stepDown()
		select {
		case err := <-failed:
			if leasehold.KindOf(err) != leasehold.NotLeader {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it waits for what will not come")
		}
		large := &storage.Catalog{Namespaces: []storage.Namespace{{Name: "x", Static: make([]storage.StaticSlot, 1<<18)}}}
		for j := range large.Namespaces[0].Static {
			large.Namespaces[0].Static[j] = storage.StaticSlot{Start: leasehold.Key(j), Owner: "o"}
		}
		if o, err := seats[i].SaveCatalog(t.Context(), large); o != storage.Conflict || leasehold.KindOf(err) != leasehold.Limit {
			t.Errorf("a catalog of megabytes: %v, %v", o, err)
		}
	})
}

// A leader is never told that it leads for longer than its lease lasts, also when that is
// not renewed any more; and it has stopped when another begins.
func TestAuthorityEndsWithTheLease(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		old, _ := h.leader(seats...)
		look := func() {
			t.Helper()
			term, left := old.leads()
			if most := old.Remaining(); term != 0 && left > most {
				t.Fatalf("it leads for another %v, and its lease lasts for %v", left, most)
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			look()
		}
		for _, s := range seats {
			if s != old {
				h.net.Cut(old.ID(), s.ID())
				h.net.Cut(s.ID(), old.ID())
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			look()
			for _, s := range seats {
				if term, _ := s.leads(); s != old && term != 0 {
					if before, left := old.leads(); before != 0 {
						t.Fatalf("another leads, and it does for another %v", left)
					}
					return
				}
			}
		}
		t.Error("nobody else has taken over")
	})
}

// A leader that reaches nobody gives way to one that does.
func TestDeafLeaderGivesWay(t *testing.T) {
	for i := range 3 {
		inHall(t, func(t *testing.T, h *hall) {
			h.deaf[ids(3)[i].Manager] = true
			seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
			deadline := time.Now().Add(2 * time.Minute)
			for ; time.Now().Before(deadline); time.Sleep(time.Second) {
				if leader, _ := h.leaderWithin(3*time.Second, seats...); leader != nil && leader != seats[i] {
					return
				}
			}
			t.Error("one that reaches nobody keeps the others from leading")
		})
	}
}

// A manager that does not hear the leader's datagrams does not vote, and says so.
func TestSilence(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		time.Sleep(5 * time.Second)
		i := slices.IndexFunc(seats, func(s *seat) bool { return s != leader })
		if !seats[i].Informed() {
			t.Fatal("it is not informed although all is well")
		}
		h.net.Cut(leader.ID(), seats[i].ID())
		time.Sleep(10 * time.Second)
		if seats[i].Informed() || !h.logged("datagrams do not arrive") {
			t.Error("it says that it votes, and does not hear what about")
		}
		if n := strings.Count(h.logs.String(), "datagrams do not arrive"); n != 1 {
			t.Errorf("it says so %d times", n)
		}
		h.net.Mend(leader.ID(), seats[i].ID())
		time.Sleep(5 * time.Second)
		if !seats[i].Informed() {
			t.Error("it hears again, and does not say so")
		}
	})
}

// A term that somebody has heard of is not led in again, nor one below it, whatever wall
// clocks show.
func TestTermsRiseAboveWhatWasHeard(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		term, _ := leader.leads()
		heard := leasehold.Term(time.Now().UnixMilli()) + 30_000
		begun := time.Now()
		for _, s := range seats {
			s.StepDown(0, heard)
		}
		leader.stepDown()
		next, _ := h.leader(seats...)
		if now, _ := next.leads(); now <= heard || now <= term || time.Since(begun) < 30*time.Second || !h.logged("Was it set back?") {
			t.Errorf("after %v it leads in term %d; %d was heard of", time.Since(begun), now, heard)
		}
	})
}

// A manager that was not there at first, and was told otherwise, is noticed by both.
func TestOtherGroupComesLate(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		h.enter(0)
		h.enter(1)
		time.Sleep(20 * time.Second)
		if !h.logged("does not answer") {
			t.Fatal("nobody misses the third")
		}
		h.enter(2, func(c *diskless.Config) { c.Peers[0].Manager = "elsewhere:7400" })
		time.Sleep(20 * time.Second)
		if !h.logged("refuses to be led") || !h.logged("this one takes no part") {
			t.Error("nobody says that it was told otherwise")
		}
	})
}

// Those who were told of another group are not understood, and the leader says so.
func TestOtherGroup(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2, func(c *diskless.Config) { c.Longest += time.Second })}
		time.Sleep(30 * time.Second)
		leading := 0
		for _, s := range seats {
			if term, _ := s.leads(); term != 0 {
				leading++
			}
		}
		if term, _ := seats[2].leads(); leading != 1 || term != 0 {
			t.Errorf("%d lead, and the odd one does: %v", leading, term != 0)
		}
		if !h.logged("refuses to be led") || !h.logged("other managers or times") {
			t.Error("nobody says that one was told otherwise")
		}
	})
}

func TestRefusesConfig(t *testing.T) {
	for want, change := range map[string]func(*diskless.Config){
		"there are 2 managers, want 3 to 9":       func(c *diskless.Config) { c.Peers = ids(2) },
		"there are 10 managers":                   func(c *diskless.Config) { c.Peers = ids(10) },
		"m1:7400 is there twice":                  func(c *diskless.Config) { c.Peers[0] = c.Peers[1] },
		"is not one of its group":                 func(c *diskless.Config) { c.Self = "m9:7400" },
		"m0:7400 is not on the loopback, so that": func(c *diskless.Config) { c.Secure = false },
		"the key has 3 bytes":                     func(c *diskless.Config) { c.Key = []byte("abc") },
	} {
		cfg := diskless.Config{Self: "m0:7400", Peers: ids(3), Transport: &flease.Memory{}, Secure: true, Lease: time.Second, Epsilon: time.Millisecond, Drift: 1.2, Longest: longest}
		change(&cfg)
		if _, err := diskless.Start(cfg); leasehold.KindOf(err) != leasehold.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
