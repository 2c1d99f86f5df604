package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// noLeaderReason returns why the group may have no leader.
func (m *Manager) noLeaderReason() string {
	if m.group == nil {
		return "no manager leads: an election is under way, or the store has lost its majority"
	}
	if why := m.group.MismatchReason(); why != "" {
		return "this manager does not take part: " + why
	}
	if !m.group.Status().Ready {
		return "no leader is known: this manager has just started, and waits until its votes from before the restart have expired"
	}
	return "no manager leads: an election is under way, or a majority of the managers is unreachable"
}

// takeoverReason returns why a leader has no catalog yet.
func (m *Manager) takeoverReason() string {
	if m.group == nil {
		return "this manager has just taken over and is reading the namespaces"
	}
	missing, wait := m.group.Missing(), m.group.GrantDelay().Round(100*time.Millisecond)
	if len(missing) > 0 && wait > 0 {
		return fmt.Sprintf("the group is new, or too many of its managers were restarted: the leader waits for %s, or %v until all leases from before have expired",
			strings.Join(missing, ", "), wait)
	}
	if len(missing) > 0 {
		return fmt.Sprintf("the leader waits for the namespaces from these managers: %s; a majority that has them is enough, but a group that is new, or was restarted, starts when all managers are up", strings.Join(missing, ", "))
	}
	return fmt.Sprintf("the group is new, or too many of its managers were restarted: the leader waits %v until all leases from before have expired", wait)
}

// notReadyReason returns why a namespace has no machine yet.
func (m *Manager) notReadyReason(now mono.Instant, ns leasehold.Namespace) string {
	if why := m.node.Problem(ns); why != nil {
		return why.Error()
	}
	if census := m.node.Census(ns); census != nil {
		return fmt.Sprintf("the leader collects the claims of its owners: %d have replied, at most %v left",
			census.Witnesses(), census.Left(now).Round(100*time.Millisecond))
	}
	return "its table is being read"
}

// notServingReason returns why this leader has no table for a lookup; "" if it does not lead. It is
// cheap: after a change of leader all lookups send requests.
func (m *Manager) notServingReason(now mono.Instant, ns leasehold.Namespace) string {
	switch {
	case !m.node.Leads(now):
		return ""
	case m.node.Catalog() == nil:
		return "it leads, and does not have the namespaces yet: " + m.takeoverReason()
	}
	return fmt.Sprintf("it leads, and does not have the table of %s yet: %s", ns, m.notReadyReason(now, ns))
}

// restoreCheckText describes the delay after a takeover with a store that may have been restored.
func restoreCheckText(left time.Duration) string {
	return fmt.Sprintf("a restored store cannot be excluded, so suspended leases resume and ranges are granted in %v", left.Round(100*time.Millisecond))
}

// silentOwnersText returns how many owners hold leases and have not sent a request to this leader:
// the status does not count them as members. It is "" if there is none.
func silentOwnersText(owners []machine.Owner) string {
	n := 0
	for i := range owners {
		if owners[i].Standing == machine.Silent && owners[i].Leases > 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("owners that hold leases and have been silent since this leader took over: %d", n)
}
