package manager

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// statusTimeout is the deadline of a forwarded request for the status, after which a standby
// replies with its own view: a stuck leader must not block diagnosis.
const statusTimeout = time.Second

// GetStatus returns the leader's status with this manager's own parts. Without a leader it returns
// this manager's view, and the reason.
func (s *adminService) GetStatus(ctx context.Context, r *leaseholdv1.GetStatusRequest) (*leaseholdv1.GetStatusResponse, error) {
	if err := wire.CheckClient(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if s.m.cfg.Access == nil || s.m.cfg.Access.FromManager(ctx) {
		s.m.standbys.record(ctx, s.m.clock.Now())
	}
	asking, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answer, forwarded, failed := forward(asking, s.m, r, leaseholdv1.AdminServiceClient.GetStatus)
	if forwarded && failed == nil {
		answer.Manager, answer.Build, answer.Store = s.m.cfg.Advertise, s.m.cfg.Build, s.m.cfg.StoreName
		answer.Leaderships = s.m.leadership.history()
		s.m.describe(answer)
		s.m.hide(ctx, answer)
		lookups := s.m.lookups.CountByNamespace()
		for _, n := range answer.GetNamespaces() {
			n.Lookups = uint32(lookups[leasehold.Namespace(n.GetName())])
		}
		return answer, nil
	}
	answer = &leaseholdv1.GetStatusResponse{
		Version: wire.Version, Manager: s.m.cfg.Advertise, Build: s.m.cfg.Build, Store: s.m.cfg.StoreName,
		Leaderships: s.m.leadership.history(),
	}
	if failed != nil {
		answer.Problem = wire.ToError(failed).Error()
	}
	if err := s.m.driver.Do(ctx, func(now mono.Instant) { s.m.status(now, answer) }); err != nil {
		return nil, wire.FromError(err) // m.status may still be writing to answer
	}
	if s.m.group != nil && s.m.group.MismatchReason() == "" {
		for _, v := range s.m.group.NonVoters() {
			answer.Warnings = append(answer.Warnings, v.String())
		}
	}
	answer.Managers = s.m.managers(answer.GetLeader() == s.m.cfg.Advertise)
	s.m.describe(answer)
	s.m.hide(ctx, answer)
	return answer, nil
}

// status fills in the machine's view. It runs on the driver's goroutine.
func (m *Manager) status(now mono.Instant, answer *leaseholdv1.GetStatusResponse) {
	_, term := m.node.Leader()
	answer.Leader, answer.Term = string(m.node.Living(now)), uint64(term)
	if m.node.Leads(now) {
		answer.LedFor = int64(m.leadership.since(now))
	}
	catalog := m.node.Catalog()
	switch {
	case answer.GetLeader() == "" && answer.GetProblem() == "":
		answer.Problem = m.noLeaderReason()
	case catalog == nil && answer.GetProblem() == "":
		answer.Problem = m.takeoverReason()
	}
	if catalog == nil || !m.node.Leads(now) {
		return
	}
	lookups := m.lookups.CountByNamespace()
	for _, n := range catalog.Namespaces {
		if n.Deleted {
			continue
		}
		status := &leaseholdv1.NamespaceStatus{Name: string(n.Name), Lookups: uint32(lookups[n.Name])}
		answer.Namespaces = append(answer.Namespaces, status)
		led := m.node.Manager(n.Name)
		if led == nil {
			status.Problem = m.notReadyReason(now, n.Name)
			continue
		}
		status.Ready = true
		t := led.Table()
		status.Lsn, status.NewestGeneration, status.Ranges = uint64(t.LSN()), uint64(t.Newest()), uint32(t.Len())
		status.Owners, status.Moves = uint32(led.Members()), uint32(led.Sizes().Moves)
		status.Problem = m.repeats.newest(now, topic{namespace: n.Name, what: machine.NotePolicyRefused}, 2*n.Renew+time.Second)
		if left := led.Undecided(now); left > 0 && status.GetProblem() == "" {
			status.Problem = restoreCheckText(left)
		}
		if status.GetProblem() == "" {
			status.Problem = silentOwnersText(led.Owners(now))
		}
		why, have, want := led.Lull()
		status.Lull = lullText(why, have, want, cmp.Or(n.LoadUnit, wire.DefaultLoadUnit))
		for _, e := range t.All() {
			if e.Vacant() {
				status.Vacant++
			}
		}
	}
}

// rounded formats a number with at most two decimals. It rounds down, so that a number below a
// threshold is not shown as the threshold.
func rounded(n float64) string {
	return strconv.FormatFloat(math.Floor(n*100)/100, 'f', -1, 64)
}

// lullText returns the reason why the machine does not rebalance; "" if it does.
func lullText(why machine.Lull, have, want float64, unit string) string {
	switch why {
	case machine.LullQuiet:
		return fmt.Sprintf("the mean load is %s %s per second and owner, and rebalancing starts at %g (min load)", rounded(have), unit, want)
	case machine.LullUnknown:
		return fmt.Sprintf("the loads of %s %% of the keys are known, and rebalancing starts at %g %%", rounded(100*have), 100*want)
	case machine.NoLull:
	}
	return ""
}
