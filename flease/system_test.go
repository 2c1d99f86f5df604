package flease

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Time in tests: a third of a lease is a renewal, and recovery takes 12 s.
const (
	lease   = 10 * time.Second
	epsilon = 500 * time.Millisecond
	// takeover bounds how long a failed holder's lease blocks others: the
	// lease times the drift bound, or with epsilon, and some round trips.
	takeover = 12*time.Second + time.Second
)

// A system is some nodes in one process, on a network in memory, on virtual time.
type system struct {
	t       *testing.T
	network *Memory
	config  Config
	nodes   map[ID]*Node
	clocks  map[ID]*testTime
	log     diary
}

// newSystem starts members 1 to n, and waits until they take part.
func newSystem(t *testing.T, n int, edit func(*Config)) *system {
	t.Helper()
	s := &system{t: t, network: &Memory{}, nodes: map[ID]*Node{}, clocks: map[ID]*testTime{}}
	s.config = Config{Lease: lease, Epsilon: epsilon, Transport: s.network, Logger: s.log.logger()}
	for i := range n {
		s.config.Members = append(s.config.Members, Member{ID: ID(i + 1)})
	}
	if edit != nil {
		edit(&s.config)
	}
	for _, m := range s.config.Members {
		s.start(m.ID)
	}
	for _, node := range s.nodes {
		if err := node.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.close)
	return s
}

func (s *system) start(id ID) *Node {
	s.t.Helper()
	cfg := s.config
	cfg.Self = id
	s.clocks[id] = &testTime{systemTime: newSystemTime(nil)}
	n, err := start(cfg, s.clocks[id])
	if err != nil {
		s.t.Fatal(err)
	}
	s.nodes[id] = n
	return n
}

func (s *system) close() {
	for _, id := range []ID{1, 2, 3, 4, 5} {
		if n := s.nodes[id]; n != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			_ = n.Close(ctx) // the last ones find no majority
			cancel()
		}
	}
}

// kill ends a node like a crash, without a release.
func (s *system) kill(id ID) {
	n := s.nodes[id]
	delete(s.nodes, id)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for other := range s.nodes {
		s.network.Cut(id, other)
		s.network.Cut(other, id)
	}
	_ = n.Close(ended)
	for other := range s.nodes {
		s.network.Mend(id, other)
		s.network.Mend(other, id)
	}
}

func (s *system) acquire(id ID, resource string) *Lease {
	s.t.Helper()
	l, err := s.nodes[id].Acquire(s.t.Context(), resource)
	if err != nil {
		s.t.Fatal(err)
	}
	if !l.Valid() || l.Err() != nil || isOver(l) {
		s.t.Fatalf("a new lease of %s is valid: %t, over: %t, %v", resource, l.Valid(), isOver(l), l.Err())
	}
	return l
}

func isOver(l *Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// within runs a test on virtual time.
func within(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// testTime is a clock that can be set, on a computer that can be suspended.
type testTime struct {
	*systemTime
	ahead atomic.Int64
	slept atomic.Uint64
}

func (c *testTime) read() (machine.Time, uint64) {
	now, sleeps := c.systemTime.read()
	now.Wall += machine.Wall(c.ahead.Load())
	return now, sleeps + c.slept.Load()
}

// A diary is a log in memory.
type diary struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (d *diary) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines.Write(line)
}

func (d *diary) logger() *slog.Logger { return slog.New(slog.NewTextHandler(d, nil)) }

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines.String()
}

// count returns the number of lines that contain all the words.
func (d *diary) count(words ...string) int {
	n := 0
	for line := range strings.Lines(d.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n
}
