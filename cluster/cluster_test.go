package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/cluster"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
)

// nextPort counts the ports: no test gets those of another.
var nextPort = func() *atomic.Int32 {
	next := new(atomic.Int32)
	next.Store(20_000 + rand.Int32N(10_000))
	return next
}()

// freeNames returns loopback addresses with free ports below the ephemeral ones: an outgoing connection could
// otherwise take the port of a server that is being restarted.
func freeNames(t *testing.T, n int) (names []string) {
	t.Helper()
	for len(names) < n {
		name := fmt.Sprintf("127.0.0.1:%d", nextPort.Add(1))
		listener, err := net.Listen("tcp", name)
		if err != nil {
			continue
		}
		_ = listener.Close()
		packets, err := net.ListenPacket("udp", name)
		if err != nil {
			continue
		}
		_ = packets.Close()
		names = append(names, name)
	}
	return names
}

// A journal is a log that tests can wait for.
type journal struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
	return j.text.Write(line)
}

func (j *journal) read() (string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String(), j.changed
}

// await waits until the log contains a text.
func (j *journal) await(t *testing.T, text string) {
	t.Helper()
	for {
		all, changed := j.read()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("the log has no %q:\n%s", text, all)
		}
	}
}

// A group is servers with one map each, and a log.
type group struct {
	t       *testing.T
	names   []string
	log     *journal
	servers map[string]*server

	settings admin.Namespace                  // of servers that start
	change   func(i int, cfg *cluster.Config) // of their configuration; may be nil
}

type server struct {
	*cluster.Cluster
	statuses *leasemap.Map[string]
}

func newGroup(t *testing.T, n int) *group {
	t.Parallel()
	g := &group{t: t, names: freeNames(t, n), log: newJournal(), servers: make(map[string]*server), settings: admin.Namespace{Lease: admin.Seconds(time.Second)}}
	t.Cleanup(g.close)
	return g
}

func (g *group) close() {
	var closing sync.WaitGroup
	for _, s := range g.servers {
		closing.Go(func() { _ = s.Close(ended()) })
	}
	closing.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// ended returns a context that has ended: Close does not wait for other members.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// join runs Join for a server.
func (g *group) join(ctx context.Context, i int) (*server, error) {
	var state leasemap.Group
	s := &server{statuses: leasemap.Add(&state, "", leasemap.Config[string]{})}
	cfg := cluster.Config{
		Namespace: "presence", Self: g.names[i], Peers: cluster.List(g.names...), State: &state,
		Handler: serve(s.statuses), Route: leasehttp.PathSegment(1), Settings: g.settings, Longest: 1200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(g.log, nil)),
	}
	if g.change != nil {
		g.change(i, &cfg)
	}
	var err error
	s.Cluster, err = cluster.Join(ctx, cfg)
	return s, err
}

// start starts servers at the same time, and returns when all have joined.
func (g *group) start(servers ...int) {
	g.t.Helper()
	joined := make([]*server, len(servers))
	var running sync.WaitGroup
	for at, i := range servers {
		running.Go(func() {
			var err error
			if joined[at], err = g.join(g.t.Context(), i); err != nil {
				g.t.Errorf("server %d: %v", i, err)
				joined[at] = nil
			}
		})
	}
	running.Wait()
	for at, i := range servers {
		if joined[at] == nil {
			all, _ := g.log.read()
			g.t.Fatal(all)
		}
		g.servers[g.names[i]] = joined[at]
	}
}

// serve is an application: PUT and GET of a status.
func serve(statuses *leasemap.Map[string]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /{user}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = statuses.Set(r.Context(), r.PathValue("user"), string(text))
		}
		leasehttp.WriteError(w, err)
	})
	mux.HandleFunc("GET /{user}", func(w http.ResponseWriter, r *http.Request) {
		if text, _, err := statuses.Get(r.PathValue("user")); !leasehttp.WriteError(w, err) {
			_, _ = io.WriteString(w, text)
		}
	})
	return mux
}

// do sends a request to a server. The error is of the request or of its status.
func (g *group) do(i int, method, user, body string) (string, error) {
	r, err := http.NewRequestWithContext(g.t.Context(), method, "http://"+g.names[i]+"/"+user, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

func user(i int) string { return fmt.Sprintf("user-%d", i) }

const users = 30

func (g *group) set(i int) {
	g.t.Helper()
	for n := range users {
		if _, err := g.do(i, http.MethodPut, user(n), "status of "+user(n)); err != nil {
			g.t.Fatal(err)
		}
	}
}

// check reads all users through a server.
func (g *group) check(i int, when string) {
	g.t.Helper()
	for n := range users {
		if text, err := g.do(i, http.MethodGet, user(n), ""); err != nil || text != "status of "+user(n) {
			g.t.Fatalf("%s: %s through server %d: %q, %v", when, user(n), i, text, err)
		}
	}
}

// TestRollingRestart: every server accepts the requests of all keys; a restart of all servers, one after the other, loses
// no value and no request.
func TestRollingRestart(t *testing.T) {
	g := newGroup(t, 3)
	g.start(0, 1, 2)
	g.set(0)
	for i := range 3 {
		g.check(i, "at first")
	}
	restarts := 3
	if testing.Short() {
		restarts = 1
	}
	for i := range restarts {
		done := make(chan error, 1)
		go func() { done <- g.servers[g.names[i]].Close(context.Background()) }()
		for closed := false; !closed; {
			g.check((i+1)%3, "while one server leaves")
			select {
			case err := <-done:
				if closed = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
		g.check((i+1)%3, "without one server")
		g.start(i)
		g.check(i, "through the restarted server")
		if s := g.servers[g.names[i]].Status(); s.Problem != "" || len(s.Voters) != 3 || s.Owner.State != owner.StateJoined {
			t.Errorf("status %+v", s)
		}
	}
}

// TestOneAfterTheOther: the first server of a new cluster waits for a majority, logs that, and counts towards it. Until then
// HTTP requests get 503. The last server joins later.
func TestOneAfterTheOther(t *testing.T) {
	g := newGroup(t, 3)
	var first sync.WaitGroup
	first.Go(func() { g.start(0) })
	g.log.await(t, "this server waits for the other members")
	if _, err := g.do(0, http.MethodGet, user(0), ""); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("before the cluster exists: %v", err)
	}
	second, err := g.join(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	first.Wait()
	g.servers[g.names[1]] = second
	if second.Status().StopRisk == "" {
		t.Error("one of two servers may be stopped, which leaves no majority of three")
	}
	g.start(2)
	g.set(2)
	g.check(1, "when the third server has joined")
}

// TestCrashOfTheLeader: after the crash of the leader, the other servers have its keys.
func TestCrashOfTheLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it waits for leases to expire on the real clock")
	}
	g := newGroup(t, 3)
	g.start(0, 1, 2)
	client, err := admin.New(admin.Config{Managers: g.names})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // a test
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader := slices.Index(g.names, status.Leader)
	_ = g.servers[status.Leader].Close(ended()) // without a transfer of keys
	g.set((leader + 1) % 3)
	g.check((leader+2)%3, "without the former leader")
	g.start(leader)
	g.check(leader, "when it is back")
}

// TestOutsiderIsRefused: only members are owners, since another process could not exchange state with them. A membership
// ends with Close, and reports that.
func TestOutsiderIsRefused(t *testing.T) {
	g := newGroup(t, 3)
	g.start(0, 1, 2)
	o, err := owner.Join(t.Context(), owner.Config{Namespace: "presence", Managers: g.names, Addr: "127.0.0.1:1"})
	if !errors.Is(err, leasehold.ErrDenied) || !strings.Contains(err.Error(), "only the members") {
		t.Errorf("an owner that is not a member joined: %v, %v", o, err)
	}
	s := g.servers[g.names[0]]
	if s.Err() != nil {
		t.Error(s.Err())
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-s.Done()
	if !errors.Is(s.Err(), leasehold.ErrClosed) {
		t.Error(s.Err())
	}
}

// TestNewClusterWaitsForEarlierLeases: a server of an earlier list that was paused may own keys, and no member can know. So a
// new cluster grants no leases for Longest, even if all of its members are up and have just started.
func TestNewClusterWaitsForEarlierLeases(t *testing.T) {
	g := newGroup(t, 3)
	g.change = func(_ int, cfg *cluster.Config) { cfg.Longest = 61 * time.Minute }
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range 3 {
		running.Go(func() {
			s, err := g.join(ctx, i)
			if err == nil {
				t.Errorf("server %d joined", i)
				_ = s.Close(ended())
			}
		})
	}
	g.log.await(t, "the leader waits 1h")
	cancel()
	running.Wait()
}

// TestSettings: the namespace is created from Settings. Other settings do not overwrite it; the log has both.
func TestSettings(t *testing.T) {
	g := newGroup(t, 3)
	g.settings.Policy = "even"
	g.start(0, 1, 2)
	if err := g.servers[g.names[0]].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.settings.Policy = "adaptive"
	g.start(0)
	g.log.await(t, "Policy is even, and adaptive in Settings")
}

// TestMoreThanNine: only nine members vote. A majority of them is enough to start, after the longest lease; a member without
// a vote serves keys and requests like the others.
func TestMoreThanNine(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it waits for leases to expire on the real clock")
	}
	g := newGroup(t, 10)
	g.start(9, 0, 1, 2, 3, 4)
	if voters := g.servers[g.names[9]].Voters(); !slices.Equal(voters, g.names[:9]) {
		t.Errorf("voters %v, want %v", voters, g.names[:9])
	}
	g.log.await(t, "No leases are granted until all leases from before have expired")
	g.set(9)
	g.check(0, "through a voter")
}

// TestSecured: members with certificates and a policy form a cluster and move their state.
func TestSecured(t *testing.T) {
	g := newGroup(t, 3)
	dir := filepath.Join(t.TempDir(), "pki")
	var parties []pki.Party
	rules := "rules:\n"
	for i, name := range g.names {
		party := pki.Party{Role: pki.Manager, Name: fmt.Sprintf("s%d", i), Hosts: []string{"127.0.0.1"}}
		parties = append(parties, party)
		for _, role := range []string{"manager, namespaces: [\"*\"]", "operator, namespaces: [presence]", "owner, namespaces: [presence], names: [\"" + name + "\"]"} {
			rules += fmt.Sprintf("  - {identity: %q, role: %s}\n", party.Identity("d"), role)
		}
	}
	if _, _, err := pki.Create(dir, "d", parties, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	g.change = func(i int, cfg *cluster.Config) {
		policy, err := access.Open(access.Config{File: file, Logger: cfg.Logger})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(policy.Close)
		keeper, err := secure.Open(secure.Dir(filepath.Join(dir, "manager", parties[i].Name)))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(keeper.Close)
		cfg.Handler, cfg.Route, cfg.Metrics = nil, leasehttp.Source{}, prometheus.NewRegistry()
		cfg.ServerCredentials, cfg.ClientCredentials, cfg.Access, cfg.Identity = keeper.Server(), keeper.Client(), policy, parties[i].Identity("d")
	}
	t.Cleanup(g.close)
	g.start(0, 1, 2)
	var former *server
	for i := 0; former == nil; i = (i + 1) % 3 { // a key that is being moved may have no owner for a moment
		if _, err := g.servers[g.names[i]].statuses.Set(t.Context(), "alice", "at home"); err == nil {
			former = g.servers[g.names[i]]
		}
	}
	if err := former.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(g.names, func(name string) bool {
		text, _, err := g.servers[name].statuses.Get("alice")
		return err == nil && text == "at home"
	}) {
		all, _ := g.log.read()
		t.Errorf("no server has the state of the one that has left\n%s", all)
	}
}

// TestUnknownHostIsWaitedFor: the name of a server may not be in DNS when it starts.
func TestUnknownHostIsWaitedFor(t *testing.T) {
	g := newGroup(t, 3)
	g.change = func(_ int, cfg *cluster.Config) { cfg.Listen = "not..yet:1" }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := g.join(ctx, 0)
		failed <- err
	}()
	g.log.await(t, "this server waits for the address of its port")
	cancel()
	if err := <-failed; !errors.Is(err, leasehold.ErrUnavailable) {
		t.Error(err)
	}
}

// TestJoinGivesUp: Join ends with its context, says for what it waited, and leaves nothing behind.
func TestJoinGivesUp(t *testing.T) {
	g := newGroup(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := g.join(ctx, 0)
		failed <- err
	}()
	g.log.await(t, "this server waits for the other members")
	cancel()
	if err := <-failed; !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "waited for the other members") {
		t.Error(err)
	}
}
