package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// diagnoseSpace derives the findings of a namespace. A problem in both observations is not
// transient. The status is that of the manager with the slowest failover.
func diagnoseSpace(s *spaceExam, status admin.Status) []finding {
	name, now := s.config.Name, s.looks[1]
	say := func(v Verdict, text, advice string) []finding { return []finding{{"space", name, v, text, advice}} }
	switch {
	case now.err != nil:
		return say(Wrong, cli.OneLine(now.err), "Repeat the check when there is a leader.")
	case now.status == nil:
		return say(Hint, "it was deleted, or there is no leader", "")
	case !now.status.Ready:
		return say(Wrong, "it is not ready: "+now.status.Problem, "If this persists, see the leader's log.")
	}
	var out []finding
	if why := now.status.Problem; why != "" {
		out = append(out, say(Wrong, why, "Its leases continue. See the leader's log, and the policy with 'leasehold namespace show "+name+"'.")...)
	}
	out = append(out, diagnoseVacant(s)...)
	out = append(out, diagnoseOwners(s)...)
	out = append(out, diagnoseMoves(s)...)
	if most := s.config.MaxOwners; most > 0 && float64(len(now.owners)) >= muchUsed*float64(most) {
		out = append(out, say(Hint, fmt.Sprintf("%s connected, and the limit is %d", console.Counted(len(now.owners), "owner"), most), "Raise it with 'leasehold namespace update "+name+" --max-owners'.")...)
	}
	if problem, advice := status.LeaseWarning(s.config); problem != "" {
		out = append(out, say(Hint, problem, advice)...)
	}
	if len(out) == 0 {
		out = say(Fine, fmt.Sprintf("%s, %s, none vacant", console.Counted(len(now.owners), "owner"), console.Counted(int(now.status.Ranges), "range")), "")
	}
	out = append(out, diagnoseSupervision(s)...)
	if why := now.status.Lull; why != "" {
		out = append(out, say(skipped, "not balanced by load now: "+why, "")...)
	}
	return out
}

func diagnoseVacant(s *spaceExam) []finding {
	name, now, before := s.config.Name, s.looks[1].status, s.looks[0].status
	switch {
	case len(s.looks[1].owners) == 0 && now.LSN == 0:
		return []finding{{"space", name, Hint, "no owner has joined yet", "Start servers that join it, or delete it with 'leasehold namespace delete " + name + "'."}}
	case len(s.looks[1].owners) == 0:
		return []finding{{"space", name, Wrong, "all of its owners have left or expired, and its keys are vacant", "Start servers that join it. 'leasehold events -n " + name + "' shows when and why they left."}}
	case now.Vacant == 0:
		return nil
	case s.config.Policy == "static":
		return []finding{{"space", name, Hint, console.Counted(int(now.Vacant), "range") + " vacant", "Its policy is static: check whether these ranges have an owner, and whether it has joined."}}
	case before == nil || before.Vacant == 0:
		return []finding{{"space", name, Hint, console.Counted(int(now.Vacant), "range") + " became vacant during the check", "Repeat the check."}}
	}
	return []finding{{"space", name, Wrong, console.Counted(int(now.Vacant), "range") + " vacant during the whole check", "Check whether every owner is draining or waiting: 'leasehold owner list -n " + name + "' and 'leasehold events -n " + name + "'."}}
}

// diagnoseOwners finds owners that are about to expire, and owners that do not follow orders. It
// names a few of each kind.
func diagnoseOwners(s *spaceExam) []finding {
	var suspended, silent, tardy, waiting, unmoving, stuck []string
	for _, o := range s.looks[1].owners {
		who := o.Owner
		before := sameSession(s.looks[0].owners, o)
		if o.Suspended {
			suspended = append(suspended, who)
			continue
		}
		switch o.State {
		case admin.OwnerSilent:
			silent = append(silent, fmt.Sprintf("%s (%s left)", who, console.Brief(time.Duration(o.Patience))))
		case admin.OwnerWaiting:
			waiting = append(waiting, who)
		default:
			if o.Late(s.config) {
				tardy = append(tardy, fmt.Sprintf("%s (%s left)", who, console.Brief(time.Duration(o.Patience))))
			}
			if !o.CanMoveState() && o.Leases > 0 {
				unmoving = append(unmoving, who)
			}
			if o.Draining && o.Leases > 0 && before.Draining && before.Leases == o.Leases && o.MovesOut == 0 {
				stuck = append(stuck, who)
			}
		}
	}
	name := s.config.Name
	var out []finding
	for _, f := range []struct {
		who          []string
		verdict      Verdict
		text, advice string
	}{
		{suspended, Wrong, "silent for longer than a lease, with suspended leases", "Check that they run and can connect to the leader. They keep their state, and resume when the leader receives a renewal; no other owner can receive their keys."},
		{silent, Wrong, "silent since the leader was elected", "Check that they run and can connect to the leader. When their patience ends, their keys go to others without their state."},
		{tardy, Wrong, "silent for two renewals", "They are paused, overloaded or disconnected. When their patience ends, their keys go to others without their state."},
		{waiting, Wrong, "waiting, because another session has the same name", "Give each server a unique name. After a restart this resolves itself when the old session ends."},
		{stuck, Hint, "draining without progress", "See 'leasehold range moves -n " + name + "', and check that another owner can receive keys."},
		{unmoving, Hint, "without state transfer", "Their state is lost when their keys move: configure a Mover if they have state."},
	} {
		if len(f.who) > 0 {
			out = append(out, finding{"owners", name, f.verdict, fmt.Sprintf("%s %s: %s", console.Counted(len(f.who), "owner"), f.text, fewOf(f.who)), f.advice})
		}
	}
	return out
}

// longHold is the time without an owner after a crash, from which on servers should have supervisors: more than with the
// preset default.
const longHold = 15 * time.Second

// diagnoseSupervision lists the owners without a supervisor.
func diagnoseSupervision(s *spaceExam) []finding {
	var without []string
	known := 0
	for _, o := range s.looks[1].owners {
		if o.Supervised == nil {
			continue
		}
		if known++; !*o.Supervised {
			without = append(without, o.Owner)
		}
	}
	hold := time.Duration(s.config.Drift * float64(s.config.Lease))
	f := finding{"crashes", s.config.Name, Fine, fmt.Sprintf("%s, each with a supervisor", console.Counted(known, "owner")), ""}
	switch {
	case known == 0:
		return nil
	case len(without) > 0:
		f.Text = fmt.Sprintf("%d of %s without a supervisor: %s; after a crash their keys have no owner for up to %s", len(without), console.Counted(known, "owner"), fewOf(without), console.Brief(hold))
	}
	if len(without) > 0 && hold > longHold {
		f.Verdict, f.Advice = Hint, "Start these servers with 'leasehold run', or choose shorter leases. Owners with WaitForPredecessor have none, and programs that join an agent with \"process\": true need none."
	}
	return []finding{f}
}

func sameSession(in []admin.Owner, o admin.Owner) (before admin.Owner) {
	if i := slices.IndexFunc(in, func(other admin.Owner) bool { return other.Session == o.Session }); i >= 0 {
		before = in[i]
	}
	return before
}

func fewOf(names []string) string {
	const few = 5
	slices.Sort(names)
	if len(names) > few {
		names = append(names[:few:few], "...")
	}
	return strings.Join(names, ", ")
}

func diagnoseMoves(s *spaceExam) []finding {
	var stuck []string
	for _, m := range s.looks[1].moves {
		i := slices.IndexFunc(s.looks[0].moves, func(o admin.Move) bool { return o.ID == m.ID })
		if m.ID != "" && i >= 0 && s.looks[0].moves[i].Bytes == m.Bytes && 2*m.Patience < s.config.MoveTimeout {
			stuck = append(stuck, m.From+" to "+m.To)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	return []finding{{
		"moves", s.config.Name, Hint, fmt.Sprintf("%s without progress: %s", console.Counted(len(stuck), "move"), fewOf(stuck)),
		"Check that the source can connect to the target's transfer address. The moves time out, and the keys stay with the source.",
	}}
}

const (
	// LookupSilence is many times the interval of a lookup's requests.
	LookupSilence = 30 * time.Second
	// Lagging is the number of missing changes from which on a lookup lags.
	Lagging = 1000
)

func diagnoseLookups(e *exam) []finding {
	var out []finding
	for _, m := range e.managers {
		total, behind := 0, []string(nil)
		for ns, l := range m.lookups {
			total += int(l.Total)
			for _, s := range l.Lookups {
				if s.Behind > Lagging || time.Duration(s.HeardAgo) > LookupSilence {
					behind = append(behind, fmt.Sprintf("%s of %s (%s behind, last request %s ago)", s.Addr, ns, console.Counted(int(s.Behind), "change"), console.Brief(time.Duration(s.HeardAgo))))
				}
			}
		}
		switch {
		case len(behind) > 0:
			out = append(out, finding{"lookups", m.addr, Hint, fmt.Sprintf("%d of %d lag: %s", len(behind), total, fewOf(behind)), "Their processes are paused or overloaded, or the network is slow: they route callers to previous owners, which reject the requests."})
		case total > 0:
			out = append(out, finding{"lookups", m.addr, Fine, console.Counted(total, "lookup") + " connected, none lags", ""})
		}
	}
	return out
}
