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

// Each standby requests the leader's status every few seconds. From these requests the leader
// learns the standbys that it lists in its own status, and from the reply a standby learns the
// leaderships before its start. Elections do not depend on either.

const (
	// reportInterval is the time between two such requests.
	reportInterval = 5 * time.Second
	// standbyExpiry is how long the leader lists a standby after its last request.
	standbyExpiry = 10 * time.Minute
	// maxStandbys bounds the list.
	maxStandbys = 63

	// Headers of calls from a manager. Binary, so any characters are valid.
	managerHeader = "leasehold-manager-bin"
	httpHeader    = "leasehold-http-bin"
	buildHeader   = "leasehold-build-bin"
)

// standbys are the managers that sent calls to this one. It is safe for concurrent use.
type standbys struct {
	mu   sync.Mutex
	seen map[string]standby
}

// A standby is the content of a manager's newest call.
type standby struct {
	at          mono.Instant
	http, build string
}

func newStandbys() *standbys { return &standbys{seen: make(map[string]standby)} }

// record records the manager that sent a call. Managers of old versions send no header.
func (s *standbys) record(ctx context.Context, now mono.Instant) {
	addr := headerOf(ctx, managerHeader)
	if ValidateAdvertise(addr) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if _, known := s.seen[addr]; known || len(s.seen) < maxStandbys {
		s.seen[addr] = standby{at: now, http: headerOf(ctx, httpHeader), build: headerOf(ctx, buildHeader)}
	}
}

// expire removes old entries. The lock is held.
func (s *standbys) expire(now mono.Instant) {
	maps.DeleteFunc(s.seen, func(_ string, b standby) bool { return now.Sub(b.at) > standbyExpiry })
}

// headerOf returns a header of a manager's call, "" if it is missing or too long.
func headerOf(ctx context.Context, name string) string {
	values := metadata.ValueFromIncomingContext(ctx, name)
	if len(values) == 0 || len(values[0]) > 256 {
		return ""
	}
	return values[0]
}

// list returns the standbys, sorted by address.
func (s *standbys) list(now mono.Instant) []*leaseholdv1.ManagerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	var out []*leaseholdv1.ManagerStatus
	for _, addr := range slices.Sorted(maps.Keys(s.seen)) {
		b := s.seen[addr]
		out = append(out, &leaseholdv1.ManagerStatus{Addr: addr, Heard: true, HeardAgo: int64(now.Sub(b.at)), Build: b.build, Http: b.http})
	}
	return out
}

// managers returns the managers of the group, this one first. The leader adds the standbys, and
// in a diskless group the configured members are listed even if they are down.
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

// report requests the leader's status periodically while this manager stands by.
func (m *Manager) report() {
	tick := time.NewTicker(reportInterval)
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

func (m *Manager) reportOnce() {
	ctx, cancel := context.WithTimeout(m.ctx, statusTimeout)
	defer cancel()
	r := &leaseholdv1.GetStatusRequest{Version: wire.Version}
	conn, err := m.connToLeader(ctx, r)
	if conn == nil || err != nil {
		return
	}
	answer, err := leaseholdv1.NewAdminServiceClient(conn).GetStatus(m.introduce(ctx), r)
	if err == nil {
		m.leadership.addOlder(answer.GetLeaderships())
	}
}
