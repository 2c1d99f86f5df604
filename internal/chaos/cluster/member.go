package cluster

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

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

	mu       sync.Mutex
	claimed  bool
	wanted   bool // it should have a process
	starts   int
	revived  int
	reviving sync.WaitGroup
}

// Start gives it a process.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	m.starts++
	return m.Child.Start()
}

// Kill takes its process away with kill -9.
func (m *Member) Kill() {
	m.unwant()
	m.Child.Kill()
}

// End asks its process to end, and kills it if the context ends before. It fails only if
// the process crashes.
func (m *Member) End(ctx context.Context) error {
	m.unwant()
	if err := m.Finish(ctx); err != nil && crashed(child.Tail(m.Launch.Log)) {
		return err
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

// Revived says how often it was started because its process had ended by itself.
func (m *Member) Revived() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revived
}

// revivalAfter is after how long a process that ended by itself is started again.
const revivalAfter = 300 * time.Millisecond

// revive is what a supervisor does, such as systemd: a manager that finds no store when
// it is started ends, and it is not its business to be started again. If it ends
// otherwise than by its own decision, that is a failure.
func (m *Member) revive(ended error, failed func(error)) {
	if crashed(child.Tail(m.Launch.Log)) {
		failed(ended)
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
		m.starts++
		m.revived++
		if err := m.Child.Start(); err != nil {
			failed(err)
		}
	})
}

// crashed says whether the last words of a process are those of Go's runtime.
func crashed(log string) bool {
	for _, words := range []string{"panic: ", "fatal error: ", "SIGSEGV", "WARNING: DATA RACE"} {
		if strings.Contains(log, words) {
			return true
		}
	}
	return false
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
