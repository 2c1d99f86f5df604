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

// diagnoseSpace says how a namespace fares: what was so at both looks is not about to
// pass.
func diagnoseSpace(s *spaceExam) []finding {
	name, now := s.config.Name, s.looks[1]
	say := func(v Verdict, text, advice string) []finding { return []finding{{"space", name, v, text, advice}} }
	switch {
	case now.err != nil:
		return say(Wrong, cli.OneLine(now.err), "Ask again when there is a leader.")
	case now.status == nil:
		return say(Hint, "it is gone, or there is no leader to ask", "")
	case !now.status.Ready:
		return say(Wrong, "it is not ready: "+now.status.Problem, "If it stays so, look at the leader's log.")
	}
	var out []finding
	if why := now.status.Problem; why != "" {
		out = append(out, say(Wrong, why, "Its leases go on. Look at the leader's log, and at the policy with 'leasehold namespace show "+name+"'.")...)
	}
	out = append(out, diagnoseVacant(s)...)
	out = append(out, diagnoseOwners(s)...)
	out = append(out, diagnoseMoves(s)...)
	if most := s.config.MaxOwners; most > 0 && float64(len(now.owners)) >= muchUsed*float64(most) {
		out = append(out, say(Hint, fmt.Sprintf("%d owners are connected, and %d may be", len(now.owners), most), "Raise it with 'leasehold namespace update "+name+" --max-owners'.")...)
	}
	if len(out) == 0 {
		out = say(Fine, fmt.Sprintf("%s, %s, none vacant", console.Counted(len(now.owners), "owner"), console.Counted(int(now.status.Ranges), "range")), "")
	}
	if why := now.status.Lull; why != "" {
		out = append(out, say(skipped, "not balanced by load now: "+why, "")...)
	}
	return out
}

func diagnoseVacant(s *spaceExam) []finding {
	name, now, before := s.config.Name, s.looks[1].status, s.looks[0].status
	switch {
	case len(s.looks[1].owners) == 0 && now.LSN == 0:
		return []finding{{"space", name, Hint, "nobody has joined it yet", "Start servers that join it, or delete it with 'leasehold namespace delete " + name + "'."}}
	case len(s.looks[1].owners) == 0:
		return []finding{{"space", name, Wrong, "all of its owners are gone, and nobody holds its keys", "Start servers that join it. 'leasehold events -n " + name + "' says when they went, and why."}}
	case now.Vacant == 0:
		return nil
	case s.config.Policy == "static":
		return []finding{{"space", name, Hint, console.Counted(int(now.Vacant), "range") + " vacant", "Its policy is static: are those meant to be nobody's, or has their owner not joined?"}}
	case before == nil || before.Vacant == 0:
		return []finding{{"space", name, Hint, console.Counted(int(now.Vacant), "range") + " vacant since a moment ago", "Look again."}}
	}
	return []finding{{"space", name, Wrong, console.Counted(int(now.Vacant), "range") + " vacant all the time", "Is every owner draining, or waiting? See 'leasehold owner list -n " + name + "' and 'leasehold events -n " + name + "'."}}
}

// diagnoseOwners finds owners that may soon be taken for dead, and those that do not
// do what was wanted of them. It names a few of each kind.
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
		{suspended, Wrong, "not heard for longer than a lease, and kept with suspended leases", "Are they running, and can they reach the leader? They keep their state, and no other owner can take their keys; they are served again when the leader hears them."},
		{silent, Wrong, "not heard since the leader took over", "Are they running, and can they reach the leader? When their time is up their keys go to others, and the state is lost."},
		{tardy, Wrong, "not heard for two renewals", "They are paused, overloaded or cut off: when their time is up their keys go to others, and the state is lost."},
		{waiting, Wrong, "waiting, because another session has the name", "Give each server a name of its own; after a restart it passes when the old session ends."},
		{stuck, Hint, "to be drained, and nothing moves", "See 'leasehold range moves -n " + name + "': is there another owner that takes part?"},
		{unmoving, Hint, "that cannot move state", "It is lost when their keys go elsewhere: configure a Mover, if they have any."},
	} {
		if len(f.who) > 0 {
			out = append(out, finding{"owners", name, f.verdict, fmt.Sprintf("%s %s: %s", console.Counted(len(f.who), "owner"), f.text, fewOf(f.who)), f.advice})
		}
	}
	return out
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
		"Can the source reach the target's address for moves? They fail by themselves, and the keys stay where they are.",
	}}
}

const (
	// lookups ask every few seconds.
	LookupSilence = 30 * time.Second
	// lagging is how many changes a lookup may lack when it asks.
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
					behind = append(behind, fmt.Sprintf("%s of %s (%s lacked, heard %s ago)", s.Addr, ns, console.Counted(int(s.Behind), "change"), console.Brief(time.Duration(s.HeardAgo))))
				}
			}
		}
		switch {
		case len(behind) > 0:
			out = append(out, finding{"lookups", m.addr, Hint, fmt.Sprintf("%d of %d lag: %s", len(behind), total, fewOf(behind)), "Their processes are paused or overloaded, or the network is slow: they send callers to former owners, who refuse."})
		case total > 0:
			out = append(out, finding{"lookups", m.addr, Fine, console.Counted(total, "lookup") + " connected, none lags", ""})
		}
	}
	return out
}
