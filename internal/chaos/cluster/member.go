package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/drifting"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
	"github.com/leasehold-dev/leasehold/internal/child"
)

// A Role is what a process is there for.
type Role string

// The roles.
const (
	Manager Role = "manager"
	Store   Role = "store"
	Owner   Role = "owner"
	Caller  Role = "caller"
)

// A Member is a process and its host.
type Member struct {
	child.Child
	Role Role
	Host *lan.Host
	Addr string // where it listens, if it does
	// Spared says that its process is not to be ended.
	Spared bool

	output func(offset time.Duration, from io.Reader) error // reads what it writes; nil if that is its log

	mu       sync.Mutex
	programs []string      // which it may be: the first, and others that can take its place
	program  int           // which of them it is
	args     []string      // what it is told
	within   []string      // the command that it is started with, in whose namespace it is to be
	disk     string        // its own, as we see it; empty: none
	offset   time.Duration // by how much its monotonic clock is ahead of ours
	rate     float64       // of its clock, if its program is one whose clock has a rate; 0: as ours
	once     []string      // what its next process is told in its environment, and no other
	dies     bool          // its next process may die at a failpoint
	armed    bool          // its process may
	claimed  bool
	excused  bool      // it may crash
	pardon   time.Time // until when it may end of what it was excused for
	wanted   bool      // it should have a process
	starts   int
	known    int // starts when somebody last asked
	revived  int
	logFrom  int64 // where in its log its last life begins
	reviving sync.WaitGroup
}

// Start gives it a process.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	return m.start()
}

// start is Start for those who have the lock.
func (m *Member) start() error {
	m.starts++
	m.logFrom = 0
	if info, err := os.Stat(m.Launch.Log); err == nil {
		m.logFrom = info.Size()
	}
	m.Launch.Program, m.Launch.Args, m.Launch.Env = m.programs[m.program], m.args, nil
	offset := m.offset
	if offset != 0 {
		seconds := fmt.Sprint(int64(offset / time.Second))
		m.Launch.Args = append([]string{"--time", "--monotonic", seconds, "--boottime", seconds, m.Launch.Program}, m.Launch.Args...)
		m.Launch.Program = unshareProgram
	}
	if m.within != nil {
		m.Launch.Args = slices.Concat(m.within[1:], []string{m.Launch.Program}, m.Launch.Args)
		m.Launch.Program = m.within[0]
	}
	if m.rate != 0 {
		m.Launch.Env = append(m.Launch.Env, drifting.Rate(m.rate))
	}
	m.Launch.Env = append(m.Launch.Env, m.once...)
	m.armed = m.dies
	m.once, m.dies = nil, false // the next process is as it should be
	if m.output != nil {
		m.Launch.Output = func(r io.Reader) error { return m.output(offset, r) }
	}
	return m.Child.Start()
}

// unshareProgram starts a process in a time namespace.
const unshareProgram = "unshare"

// Become has it be another of its programs when it is started next, and reports whether
// there is another.
func (m *Member) Become() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program = (m.program + 1) % len(m.programs)
	return len(m.programs) > 1
}

// revert has it be its first program when it is started next, and reports whether it was another.
func (m *Member) revert() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	other := m.program != 0
	m.program = 0
	return other
}

// Shift has its monotonic clock be ahead by whole seconds when it is started next.
func (m *Member) Shift(offset time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offset = offset.Truncate(time.Second)
}

// Drift has its clock run at a rate when it is started next.
func (m *Member) Drift(rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rate = rate
}

// Set has its wall clock be set, a time after it is started next, and be right again later.
func (m *Member) Set(by, after, until time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.once = append(m.once, drifting.Wall(by, after, until))
}

// Arm has a failpoint of its next process do something, if its program has any.
func (m *Member) Arm(point string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.once, m.dies = append(m.once, "LEASEHOLD_FAILPOINTS="+point), true
}

// lastWords is how long a process may take to end that has crashed: it has much to say.
const lastWords = 2 * time.Second

// Excuse says whether it may crash. Who may no longer may still be about to end.
func (m *Member) Excuse(excused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.excused && !excused {
		m.pardon = time.Now().Add(lastWords)
	}
	m.excused = excused
}

// isExcused says whether it may have crashed. The lock is held.
func (m *Member) isExcused() bool { return m.excused || time.Now().Before(m.pardon) }

// Kill takes its process away with kill -9.
func (m *Member) Kill() {
	m.unwant()
	m.Child.Kill()
}

// End asks its process to end, and kills it if the context ends before. It fails only if
// the process crashes.
func (m *Member) End(ctx context.Context) error {
	m.unwant()
	if err := m.Finish(ctx); err != nil && m.crashed() {
		return Crash{err}
	}
	return nil
}

// Close is Kill for good.
func (m *Member) Close() {
	m.unwant()
	m.Child.Close()
	m.reviving.Wait()
}

// Stop halts its process. One that has ended by itself meanwhile stands still as well.
func (m *Member) Stop() error { return unlessDone(m.Child.Stop()) }

// GoOn lets it go on.
func (m *Member) GoOn() error { return unlessDone(m.Child.GoOn()) }

func unlessDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (m *Member) unwant() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = false
}

// restarted says whether it has another process than when it was last asked.
func (m *Member) restarted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known
	m.known = m.starts
	return known != m.starts
}

// Revived says how often it was started because its process had ended by itself.
func (m *Member) Revived() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revived
}

// A Crash is the end of a process that had no reason to end.
type Crash struct{ Err error }

func (c Crash) Error() string { return c.Err.Error() }

// Unwrap is how it ended.
func (c Crash) Unwrap() error { return c.Err }

// revivalAfter is after how long a process that ended by itself is started again.
const revivalAfter = 300 * time.Millisecond

// revive is what a supervisor does, such as systemd: a manager that finds no store when
// it is started ends, and it is not its business to be started again. If it ends
// otherwise than by its own decision, that is a failure, and so is it if an owner or a
// caller ends: they have no reason to, unless they are told to die.
func (m *Member) revive(ended error, failed func(error)) {
	if m.crashed() || !m.mayEnd() {
		failed(Crash{ended})
		return
	}
	m.mu.Lock()
	starts := m.starts
	m.mu.Unlock()
	m.reviving.Go(func() {
		<-time.After(revivalAfter)
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.wanted || m.starts != starts {
			return // somebody else has seen to it
		}
		m.revived++
		if err := m.start(); err != nil {
			failed(err)
		}
	})
}

// mayEnd says whether its process may end by itself.
func (m *Member) mayEnd() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Role == Manager || m.Role == Store || m.isExcused() || m.armed || !m.wanted
}

// crashed says whether the last words of its process are those of Go's runtime, and
// that is not excused. No want of memory or room is an excuse for what is wrong in a program.
func (m *Member) crashed() bool {
	m.mu.Lock()
	from, excused := m.logFrom, m.isExcused()
	m.mu.Unlock()
	log, err := os.Open(m.Launch.Log)
	if err != nil {
		return false
	}
	defer log.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.NewSectionReader(log, from, math.MaxInt64-from))
	return err == nil && panicked(string(text), excused)
}

func panicked(log string, excused bool) bool {
	words := []string{"\npanic: runtime error: ", "\nfatal error: all goroutines are asleep", "\nfatal error: concurrent map", "WARNING: DATA RACE"}
	if !excused {
		words = append(words, "\npanic: ", "\nfatal error: ", "SIGSEGV")
	}
	log = "\n" + log
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(log, w) }) || disbelieved(log)
}

// disbelieved says whether a machine panicked, which it does if what it rests on does not hold.
func disbelieved(log string) bool {
	_, last, found := strings.Cut(log, "\npanic: ")
	if _, rest, more := strings.Cut(last, "\n\n"); more {
		last, _, _ = strings.Cut(rest, "\n\n") // the goroutine that did
	}
	return found && strings.Contains(last, "/internal/machine/")
}

// Claim takes a member for one who wants to hurt its process, and reports whether
// nobody else had it: a process that is dead cannot be stopped.
func (m *Member) Claim() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	claimed := m.claimed
	m.claimed = true
	return !claimed
}

// Release gives a member back that was claimed.
func (m *Member) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claimed = false
}

// Hosts are the hosts of members.
func Hosts(members ...[]*Member) []*lan.Host {
	var hosts []*lan.Host
	for _, some := range members {
		for _, m := range some {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}
