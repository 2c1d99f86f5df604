package manager

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A leader has no need to know who stands by: whoever wants to lead watches the store.
// People do. So a manager that stands by asks the leader every few seconds how it is,
// which lets the leader know of it, and lets it know who has led before it was started.
// Nothing is decided by either.

const (
	// reportEvery is how often a manager that stands by speaks to the leader.
	reportEvery = 5 * time.Second
	// standbyMemory is for how long the leader speaks of a manager that does not.
	standbyMemory = 10 * time.Minute
	// mostStandbys bounds of how many it knows.
	mostStandbys = 63

	// What a call that is forwarded says about who does it, in any characters.
	managerHeader = "leasehold-manager-bin"
	httpHeader    = "leasehold-http-bin"
	buildHeader   = "leasehold-build-bin"
)

// standbys is who stands by. Its methods may be called from many goroutines at once.
type standbys struct {
	mu    sync.Mutex
	heard map[string]standby
}

// A standby is a manager as it has last said it is.
type standby struct {
	at          mono.Instant
	http, build string
}

func newStandbys() *standbys { return &standbys{heard: make(map[string]standby)} }

// hear notes who has forwarded a call. Those of an earlier version do not say.
func (s *standbys) hear(ctx context.Context, now mono.Instant) {
	addr := headerOf(ctx, managerHeader)
	if ValidateAdvertise(addr) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	if _, known := s.heard[addr]; known || len(s.heard) < mostStandbys {
		s.heard[addr] = standby{at: now, http: headerOf(ctx, httpHeader), build: headerOf(ctx, buildHeader)}
	}
}

// forget forgets those who were not heard for long. The lock is held.
func (s *standbys) forget(now mono.Instant) {
	maps.DeleteFunc(s.heard, func(_ string, b standby) bool { return now.Sub(b.at) > standbyMemory })
}

// headerOf returns what a call says about whoever forwards it.
func headerOf(ctx context.Context, name string) string {
	values := metadata.ValueFromIncomingContext(ctx, name)
	if len(values) == 0 || len(values[0]) > 256 {
		return ""
	}
	return values[0]
}

// list returns them, sorted by address.
func (s *standbys) list(now mono.Instant) []*leaseholdv1.ManagerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	var out []*leaseholdv1.ManagerStatus
	for _, addr := range slices.Sorted(maps.Keys(s.heard)) {
		b := s.heard[addr]
		out = append(out, &leaseholdv1.ManagerStatus{Addr: addr, Heard: true, HeardAgo: int64(now.Sub(b.at)), Build: b.build, Http: b.http})
	}
	return out
}

// managers returns what is known of the managers of the group: ourselves first if we lead.
// Those who stand by speak to the leader alone.
func (m *Manager) managers(leads bool) []*leaseholdv1.ManagerStatus {
	self := &leaseholdv1.ManagerStatus{Addr: m.cfg.Advertise, Leads: leads, Heard: true, Build: m.cfg.Build, Http: m.cfg.HTTP}
	out := []*leaseholdv1.ManagerStatus{self}
	if leads {
		for _, s := range m.standbys.list(m.clock.Now()) {
			if s.GetAddr() != self.GetAddr() {
				out = append(out, s)
			}
		}
	}
	if m.cfg.Peers != nil {
		for _, p := range m.cfg.Peers.Members {
			if !slices.ContainsFunc(out, func(s *leaseholdv1.ManagerStatus) bool { return s.GetAddr() == p.Manager }) {
				out = append(out, &leaseholdv1.ManagerStatus{Addr: p.Manager})
			}
		}
	}
	slices.SortStableFunc(out[1:], func(a, b *leaseholdv1.ManagerStatus) int { return cmp.Compare(a.GetAddr(), b.GetAddr()) })
	return out
}

// report speaks to the leader for as long as we are not it.
func (m *Manager) report() {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		m.reportOnce()
	}
}

// reportOnce asks the leader how it is, on nobody's behalf.
func (m *Manager) reportOnce() {
	ctx, cancel := context.WithTimeout(m.ctx, statusPatience)
	defer cancel()
	r := &leaseholdv1.GetStatusRequest{Version: wire.Version}
	conn, err := m.elsewhere(ctx, r)
	if conn == nil || err != nil {
		return
	}
	answer, err := leaseholdv1.NewAdminServiceClient(conn).GetStatus(m.introduce(ctx), r)
	if err == nil {
		m.leading.learn(answer.GetLeaderships())
	}
}
