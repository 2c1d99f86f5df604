package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/lab/chaos/skewedclock"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Role is the role of a process.
type Role string

// The roles.
const (
	Manager Role = "manager"
	Store   Role = "store"
	Owner   Role = "owner"
	Caller  Role = "caller"
	Server  Role = "server" // an owner with a manager
)

// A Member is a process and its host.
type Member struct {
	proc.Process
	Role   Role
	Host   *lan.Host
	Addr   string // listen address, if it listens
	Spared bool   // faults must not end its process

	programs []string // the first, and other builds of it
	args     []string
	output   func(offset time.Duration, from io.Reader) error // reads its output; nil: the output goes to the log
	within   []string                                         // command prefix that enters its namespace
	disk     string                                           // path of its disk in this process's namespace; empty: none

	mu       sync.Mutex
	next     Options
	life     life
	claimed  bool
	excused  bool           // a fault may crash it
	pardon   time.Time      // until when a crash is excused after the fault
	revived  map[string]int // restarts of processes that ended by themselves, by the reason
	reviving sync.WaitGroup
}

// Options are the options of the next process.
type Options struct {
	Program int           // index into the programs
	Offset  time.Duration // of its monotonic clock, in whole seconds
	Rate    float64       // of its clock, if the program supports it; 0: unchanged

	// Once is added to the environment of the next process only, which may end because of it if Dies is set.
	Once []string
	Dies bool
}

type life struct {
	wanted  bool // a process should run
	dies    bool // a failpoint may end it
	starts  int
	known   int   // starts at the last call of Blank
	logFrom int64 // offset of this process in the log
}

// locked calls a function with the lock held.
func (m *Member) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// Configure changes the options of the next process.
func (m *Member) Configure(change func(*Options)) { m.locked(func() { change(&m.next) }) }

// Start starts a process.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life.wanted = true
	return m.start()
}

func (m *Member) start() error {
	m.life.starts++
	m.life.logFrom = 0
	if info, err := os.Stat(m.Launch.Log); err == nil {
		m.life.logFrom = info.Size()
	}
	command := append([]string{m.programs[m.next.Program]}, m.args...)
	offset := m.next.Offset.Truncate(time.Second)
	if offset != 0 {
		seconds := fmt.Sprint(int64(offset / time.Second))
		command = append([]string{"unshare", "--time", "--monotonic", seconds, "--boottime", seconds}, command...)
	}
	command = slices.Concat(m.within, command)
	m.Launch.Program, m.Launch.Args, m.Launch.Env = command[0], command[1:], m.next.Once
	if m.next.Rate != 0 {
		m.Launch.Env = append(m.Launch.Env, skewedclock.Rate(m.next.Rate))
	}
	m.life.dies = m.next.Dies
	m.next.Once, m.next.Dies = nil, false
	if m.output != nil {
		m.Launch.Output = func(r io.Reader) error { return m.output(offset, r) }
	}
	return m.Process.Start()
}

// Become makes the next process run the next program.
func (m *Member) Become() {
	m.Configure(func(o *Options) { o.Program = (o.Program + 1) % len(m.programs) })
}

// crashTime is the maximum time that a crashed process needs to end: it prints its stacks.
const crashTime = 2 * time.Second

// Excuse sets whether a crash is excused. A process that is not excused any more may still be ending.
func (m *Member) Excuse(excused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.excused && !excused {
		m.pardon = time.Now().Add(crashTime)
	}
	m.excused = excused
}

// isExcused reports whether a crash is excused. The caller holds the lock.
func (m *Member) isExcused() bool { return m.excused || time.Now().Before(m.pardon) }

// Kill kills its process with SIGKILL.
func (m *Member) Kill() {
	m.locked(func() { m.life.wanted = false })
	m.Process.Kill()
}

// endTimeout limits the time after SIGTERM. Under faults the end can take longer: then the process is killed.
const endTimeout = 5 * time.Second

// End terminates its process. It returns an error only if the process crashes.
func (m *Member) End() error {
	m.locked(func() { m.life.wanted = false })
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := m.Terminate(ctx); err != nil && m.crashed() {
		return Crash{err}
	}
	return nil
}

// Close kills its process for good.
func (m *Member) Close() {
	m.locked(func() { m.life.wanted = false })
	m.Process.Close()
	m.reviving.Wait()
}

// Pause stops its process, unless that has ended by itself.
func (m *Member) Pause() error { return unlessDone(m.Process.Pause()) }

// Resume continues its process.
func (m *Member) Resume() error { return unlessDone(m.Process.Resume()) }

func unlessDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// A Crash is the unexpected end of a process.
type Crash struct{ Err error }

func (c Crash) Error() string { return c.Err.Error() }

func (c Crash) Unwrap() error { return c.Err }

// revivalAfter is the delay before the restart of a process that ended by itself.
const revivalAfter = 300 * time.Millisecond

// revive acts as a supervisor: it restarts a manager or store, which may end without its store or quorum, a server whose manager ends, and
// a process that a fault may end. Any other end is a failure.
func (m *Member) revive(ended error, failed func(error)) {
	if m.crashed() || !m.mayEnd() {
		failed(Crash{ended})
		return
	}
	why := string(m.Role) + ": " + reason(ended, m.logged())
	var starts int
	m.locked(func() { starts = m.life.starts })
	m.reviving.Go(func() {
		<-time.After(revivalAfter)
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.life.wanted || m.life.starts != starts {
			return // killed or started in between
		}
		if m.revived == nil {
			m.revived = make(map[string]int)
		}
		m.revived[why]++
		if err := m.start(); err != nil {
			failed(err)
		}
	})
}

// mayEnd reports whether its process may end by itself.
func (m *Member) mayEnd() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Role == Manager || m.Role == Store || m.Role == Server || m.isExcused() || m.life.dies || !m.life.wanted
}

// crashed reports whether the log of its process ends with an error of Go's runtime that is not excused. Lack
// of memory or disk does not excuse all errors.
func (m *Member) crashed() bool {
	m.mu.Lock()
	excused := m.isExcused()
	m.mu.Unlock()
	return panicked(m.logged(), excused)
}

// logged returns the log of its process.
func (m *Member) logged() string {
	m.mu.Lock()
	from := m.life.logFrom
	m.mu.Unlock()
	log, err := os.Open(m.Launch.Log)
	if err != nil {
		return ""
	}
	defer log.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.NewSectionReader(log, from, math.MaxInt64-from))
	if err != nil {
		return ""
	}
	return string(text)
}

// varying matches the parts of an error that differ between processes: quoted text, addresses and numbers.
var varying = regexp.MustCompile(`"[^"]*"|\(?[0-9][0-9a-z.:/]*\)?`)

// reason returns why a process ended: the failpoint, the error of the command, or the exit status.
func reason(ended error, log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if point, found := strings.CutPrefix(line, "failpoint "); found && strings.HasSuffix(line, ": kill") {
			return "failpoint " + strings.TrimSuffix(point, ": kill")
		}
		if _, text, found := strings.Cut(line, ": "); found && strings.HasPrefix(line, "leasehold") {
			return strings.Join(strings.Fields(varying.ReplaceAllString(text, "")), " ")
		}
	}
	return fmt.Sprint(ended)
}

func panicked(log string, excused bool) bool {
	words := []string{"\npanic: runtime error: ", "\nfatal error: all goroutines are asleep", "\nfatal error: concurrent map", "WARNING: DATA RACE"}
	if !excused {
		words = append(words, "\npanic: ", "\nfatal error: ", "SIGSEGV")
	}
	log = "\n" + log
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(log, w) }) || machinePanicked(log)
}

// machinePanicked reports whether a state machine panicked: an assertion failed.
func machinePanicked(log string) bool {
	_, last, found := strings.Cut(log, "\npanic: ")
	if _, rest, more := strings.Cut(last, "\n\n"); more {
		last, _, _ = strings.Cut(rest, "\n\n") // the goroutine of the panic
	}
	// The second path is that of older builds.
	return found && (strings.Contains(last, "/internal/core/machine/") || strings.Contains(last, "/internal/machine/"))
}

// Claim reserves a member for one fault, and reports whether it was free.
func (m *Member) Claim() (free bool) {
	m.locked(func() { free, m.claimed = !m.claimed, true })
	return free
}

// Release frees a claimed member.
func (m *Member) Release() { m.locked(func() { m.claimed = false }) }

// Hosts returns the hosts of members.
func Hosts(members ...[]*Member) []*lan.Host {
	var hosts []*lan.Host
	for _, m := range slices.Concat(members...) {
		hosts = append(hosts, m.Host)
	}
	return hosts
}
