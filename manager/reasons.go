package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// leaderless says why nobody may lead.
func (m *Manager) noLeaderReason() string {
	if m.group == nil {
		return "no manager leads: an election is under way, or the store has lost its majority"
	}
	if why := m.group.MismatchReason(); why != "" {
		return "this manager takes no part: " + why
	}
	if !m.group.Status().Ready {
		return "no manager leads, as far as this one knows: it has just started, and waits until what it may have promised before is over"
	}
	return "no manager leads: they are about to agree on one, or a majority of them is out of reach"
}

// takingOver says what a leader waits for that does not know its namespaces.
func (m *Manager) takeoverReason() string {
	if m.group == nil {
		return "this manager has just taken over, and is reading its namespaces"
	}
	if missing := m.group.Missing(); len(missing) > 0 {
		return fmt.Sprintf("the leader has not yet heard what these managers remember: %s; a majority that remembers is enough, but a group that is new, or was restarted, begins when all are up", strings.Join(missing, ", "))
	}
	return fmt.Sprintf("the group is new, or too many of its managers were restarted: the leader waits until no lease from before can be left, for %v more",
		m.group.GrantDelay().Round(100*time.Millisecond))
}

// unready says what a namespace waits for whose table is not known.
func (m *Manager) notReadyReason(now mono.Instant, ns leasehold.Namespace) string {
	if why := m.node.Problem(ns); why != nil {
		return why.Error()
	}
	if census := m.node.Census(ns); census != nil {
		return fmt.Sprintf("its owners are being asked what they have; %d have answered, and it takes %v more at most",
			census.Witnesses(), census.Left(now).Round(100*time.Millisecond))
	}
	return "its table is being read"
}

// unanswered says why a lookup of a namespace is not answered by the one that leads;
// "" if we do not. It is cheap: when leadership changes, all lookups ask.
func (m *Manager) notServingReason(now mono.Instant, ns leasehold.Namespace) string {
	switch {
	case !m.node.Leads(now):
		return ""
	case m.node.Catalog() == nil:
		return "it leads, and does not know the namespaces yet: " + m.takeoverReason()
	}
	return fmt.Sprintf("it leads, and does not know the table of %s yet: %s", ns, m.notReadyReason(now, ns))
}

// undecided says what is waited for after a takeover that may have found a restored store.
func restoreCheckText(left time.Duration) string {
	return fmt.Sprintf("a restored store cannot be excluded, so suspended leases resume and ranges are granted in %v", left.Round(100*time.Millisecond))
}

// unheard says that owners hold something, and have not been heard since we lead: they
// are not among the owners that are counted. It is "" if there is none.
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
	return fmt.Sprintf("owners that hold leases and have not been heard since this leader took over: %d", n)
}
