package explore

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

func processName(i int) string {
	if i < managers {
		return "manager " + string(managerNames[i])
	}
	if i == follower {
		return "the lookup"
	}
	return "owner " + string(ownerNames[i-managers])
}

func (l *message) String() string {
	to := processName(l.to)
	switch what := l.what.(type) {
	case *request:
		return fmt.Sprintf("request of %s to the store: %s", to, what)
	case managerproc.Request:
		return fmt.Sprintf("owner %s to %s: request %d, received %d of term %d, applied %d, has %v",
			what.Holder.Owner, to, what.Seq, what.Heard, what.Term, what.Applied, what.Leases)
	case managerproc.Died:
		return fmt.Sprintf("to %s: session %s of owner %s has died", to, what.Session.Short(), what.Owner)
	case owner.Reply:
		var offers []string
		for _, o := range what.Offers {
			fresh := ""
			if o.Fresh {
				fresh = " (new)"
			}
			offers = append(offers, o.String()+fresh)
		}
		return fmt.Sprintf("manager %s to %s: reply %d of term %d, echo %d, offers [%s]",
			what.Leader, to, what.Seq, what.Term, what.Echo, strings.Join(offers, " "))
	case managerproc.Lookup:
		return fmt.Sprintf("request of %s to %s: the table after lsn %d", processName(int(what.LookupRequest.Lookup)), to, what.LSN)
	case lookup.Reply:
		return fmt.Sprintf("to %s: the table at lsn %d", to, what.LSN)
	case owner.Redirect:
		return fmt.Sprintf("to %s: %q leads in term %d", to, what.Leader, what.Term)
	}
	return fmt.Sprintf("to %s: %T", to, l.what)
}

func (r *request) String() string {
	switch what := r.what.(type) {
	case byrecord.Read:
		return "read the leader record"
	case byrecord.Swap:
		return fmt.Sprintf("make %s the leader in term %d, beat %d", what.New.Leader, what.New.Term, what.New.Beat)
	case manager.Commit:
		var changes []string
		for i := range what.Batch.Changes {
			changes = append(changes, what.Batch.Changes[i].String())
		}
		return fmt.Sprintf("in term %d, commit %s", what.Batch.Term, strings.Join(changes, "; "))
	case manager.ReadEnd:
		return "read the end of the log"
	case managerproc.Load:
		return "load the table"
	}
	return "load the catalog"
}

func (st *state) Line(step string) string {
	return fmt.Sprintf("%9.3fs  %s\n            %s", st.now.Seconds(), step, st.holdings())
}

// holdings describes the leases and the leadership of all processes, according to their own state.
func (st *state) holdings() string {
	var out []string
	for i, p := range st.running() {
		switch {
		case p.node != nil && p.node.Leads(st.clock(i)):
			out = append(out, fmt.Sprintf("%s leads in term %d", processName(i), p.node.Term()))
		case p.owner != nil && len(p.owner.View().Leases) > 0 && st.clock(i) < p.owner.View().Until:
			out = append(out, fmt.Sprintf("%s has %v", processName(i), p.owner.View().Leases))
		case p.owner != nil && p.owner.Suspended():
			out = append(out, fmt.Sprintf("%s has %v suspended", processName(i), p.owner.View().Leases))
		case p.lookup != nil:
			out = append(out, fmt.Sprintf("%s is at lsn %d", processName(i), p.lookup.LSN()))
		}
	}
	return strings.Join(out, ", ")
}
