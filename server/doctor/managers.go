package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// diagnose derives the findings from an exam. It has no side effects.
func diagnose(e *exam) []finding {
	var out []finding
	for _, m := range e.managers {
		out = append(out, diagnoseReach(m))
	}
	out = append(out, diagnoseOwnTLS(&e.tls)...)
	out = append(out, diagnoseShown(e)...)
	if out = append(out, diagnoseLeader(e)...); !slices.ContainsFunc(e.managers, (*managerExam).answers) {
		return out // further findings would have the same cause
	}
	out = append(out, diagnoseBuilds(e)...)
	out = append(out, diagnoseMembers(e)...)
	for _, m := range e.managers {
		if m.answers() {
			out = append(out, diagnoseLimits(m)...)
			out = append(out, diagnoseHealth(m))
		}
	}
	out = append(out, diagnoseClocks(e)...)
	if e.failed != nil {
		out = append(out, finding{"spaces", "", Wrong, "the namespaces could not be checked: " + cli.OneLine(e.failed), "Repeat the check when there is a leader."})
	}
	for _, s := range e.spaces {
		out = append(out, diagnoseSpace(s, slowestFailover(e))...)
	}
	out = append(out, diagnoseLookups(e)...)
	return append(out, diagnoseFiles())
}

// slowestFailover is the status of the manager with the slowest failover.
func slowestFailover(e *exam) (slowest admin.Status) {
	for _, m := range e.managers {
		if s := admin.StatusOf(m.status); s.Failover > slowest.Failover {
			slowest = s
		}
	}
	return slowest
}

func (m *managerExam) answers() bool { return m.err == nil }

// slowAnswer is far above the round trip in a local network.
const slowAnswer = 250 * time.Millisecond

func diagnoseReach(m *managerExam) finding {
	switch {
	case m.err != nil && cli.SecureAdvice(m.err) != "":
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err), cli.SecureAdvice(m.err)}
	case m.err != nil && m.listens:
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err) + ", although it accepts connections", "It may wait for its store, or for a quorum of its group: see its log, and /readyz at its --http address. Start the other managers of the group."}
	case m.err != nil:
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err), "Check that it runs, that the address is right, and that firewalls permit the connection."}
	case m.fastest > slowAnswer:
		return finding{"reach", m.addr, Hint, "responds in " + console.Brief(m.fastest) + " at best", "It is far away, or its computer is overloaded."}
	}
	return finding{"reach", m.addr, Fine, "responds in " + briefer(m.fastest), ""}
}

// briefer adds digits for durations below 10 ms.
func briefer(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return console.Brief(d)
}

// diagnoseLeader checks that all managers report the same leader and term.
func diagnoseLeader(e *exam) []finding {
	var out []finding
	reporters := make(map[string][]string) // managers, by the leader and term they report
	for _, m := range e.managers {
		if !m.answers() {
			continue
		}
		s := m.status
		if why := s.GetProblem(); why != "" {
			out = append(out, finding{"leader", m.addr, Wrong, why, "Existing leases continue until they expire, and no other changes are made: see the log of this manager."})
		}
		for _, w := range s.GetWarnings() {
			f := finding{"group", m.addr, Hint, w, "Until this is resolved, the group tolerates one failure less."}
			if !slices.ContainsFunc(out, func(o finding) bool { return o.Check == f.Check && o.Text == f.Text }) {
				out = append(out, f)
			}
		}
		if s.GetLeader() != "" {
			leads := fmt.Sprintf("%s leads in term %d", s.GetLeader(), s.GetTerm())
			reporters[leads] = append(reporters[leads], m.addr)
		}
	}
	if len(reporters) == 1 {
		for leads, by := range reporters {
			out = append(out, finding{"leader", "", Fine, fmt.Sprintf("%s, reported by %s", leads, countReporters(len(by))), ""})
		}
	}
	if len(reporters) > 1 {
		var versions []string
		for leads, by := range reporters {
			versions = append(versions, fmt.Sprintf("%s (%s)", leads, strings.Join(by, ", ")))
		}
		slices.Sort(versions)
		out = append(out, finding{
			"leader", "", Wrong, "managers disagree on the leader: " + strings.Join(versions, "; "),
			"If this lasts for more than a few seconds, they belong to different groups, or cannot connect to each other: compare their --members, --peers or --etcd.",
		})
	}
	return out
}

func countReporters(n int) string {
	if n == 1 {
		return "1 manager"
	}
	return fmt.Sprintf("all %d managers that respond", n)
}

func diagnoseBuilds(e *exam) []finding {
	runs := make(map[string][]string)
	for _, m := range e.managers {
		if m.answers() {
			runs[m.status.GetBuild()] = append(runs[m.status.GetBuild()], m.addr)
		}
	}
	var builds []string
	for build, by := range runs {
		builds = append(builds, fmt.Sprintf("%s (%s)", console.OrDash(build), strings.Join(by, ", ")))
	}
	slices.Sort(builds)
	if len(builds) > 1 {
		return []finding{{"build", "", Hint, strings.Join(builds, "; "), "Complete the upgrade: new features require it on all managers."}}
	}
	return []finding{{"build", "", Fine, builds[0], ""}}
}

func diagnoseMembers(e *exam) []finding {
	if len(e.members) == 0 {
		return nil
	}
	var out []finding
	for _, m := range e.members {
		switch {
		case !m.Healthy:
			out = append(out, finding{"member", m.Name, Wrong, "its store does not respond", "Start it; if it has failed permanently, remove it with 'leasehold manager remove " + m.Name + "' and add another."})
		case m.Learner:
			out = append(out, finding{"member", m.Name, Hint, "it is a learner that has not caught up, and does not vote", ""})
		}
	}
	n := len(e.members)
	switch {
	case n == 1:
		out = append(out, finding{"member", "", Hint, "there is only one manager, and none takes over if it fails", "Add two more with 'leasehold manager run --join'."})
	case n%2 == 0:
		out = append(out, finding{"member", "", Hint, fmt.Sprintf("%d managers tolerate no more failures than %d", n, n-1), "Add one, or remove one."})
	case len(out) == 0:
		out = append(out, finding{"member", "", Fine, fmt.Sprintf("the stores of all %d managers respond", n), ""})
	}
	if n > len(e.managers) {
		out = append(out, finding{"member", "", Hint, fmt.Sprintf("the group has %d managers, of which %d were checked", n, len(e.managers)), "Name all of them with --managers."})
	}
	return out
}

// Shares of a limit that cause a hint or an error.
const (
	muchUsed    = 0.8
	tooMuchUsed = 0.95
)

// diagnoseLimits returns a finding for each limit that is near, and one for all others.
func diagnoseLimits(m *managerExam) []finding {
	var out []finding
	var far []string
	for _, u := range m.status.GetUsages() {
		share := float64(u.GetUsed()) / float64(max(1, u.GetMost()))
		switch {
		case share >= tooMuchUsed:
			out = append(out, finding{"limits", m.addr, Wrong, usageText(u), usageAdvice(u.GetWhat())})
		case share >= muchUsed:
			out = append(out, finding{"limits", m.addr, Hint, usageText(u), usageAdvice(u.GetWhat())})
		default:
			far = append(far, usageText(u))
		}
	}
	if len(far) > 0 {
		out = append(out, finding{"limits", m.addr, Fine, strings.Join(far, "; "), ""})
	}
	return out
}

func usageText(u *leaseholdv1.Usage) string {
	used, most := console.Grouped(u.GetUsed()), console.Grouped(u.GetMost())
	what := u.GetWhat()
	if rest, bytes := strings.CutPrefix(what, "bytes of "); bytes {
		used, most, what = humanize.IBytes(u.GetUsed()), humanize.IBytes(u.GetMost()), rest
	}
	return fmt.Sprintf("%s %s of %s", what, used, most)
}

func usageAdvice(what string) string {
	switch what {
	case "bytes of the store":
		return "If it is full, no leases are granted: delete unused namespaces, or start managers with a larger --quota."
	case "open files":
		return "Raise the limit of the process (LimitNOFILE= in its unit, ulimit -n)."
	}
	return "Connect some clients to other managers of the group."
}

func diagnoseHealth(m *managerExam) finding {
	at, scheme := httpOf(m.addr, m.status.GetHttp()), "http://"
	if m.shown != nil {
		scheme = "https://"
	}
	switch {
	case m.status.GetHttp() == "":
		return finding{"http", m.addr, skipped, "it serves no HTTP, or is too old to report its address", ""}
	case at == "":
		return finding{"http", m.addr, skipped, "it listens only on the loopback of its computer, at " + m.status.GetHttp(), "Check it there: 'curl " + scheme + m.status.GetHttp() + "/readyz'."}
	case m.health != nil:
		return finding{"http", m.addr, Hint, "no response from " + scheme + at + "/readyz: " + cli.OneLine(m.health), "Orchestrators, Prometheus and browsers need an --http address that they can connect to."}
	case m.unhealthy != "":
		return finding{"http", m.addr, Wrong, "it is not ready: " + strings.Join(strings.Fields(m.unhealthy), " "), "See its log."}
	}
	return finding{"http", m.addr, Fine, scheme + at + " reports ready", ""}
}

// leastFiles is the recommended minimum of open files for a server.
const leastFiles = 4096

func diagnoseFiles() finding {
	used, most, known := daemon.OpenFiles()
	switch {
	case !known:
		return finding{"files", thisComputer, skipped, "this system does not report the limit of open files", ""}
	case most < leastFiles:
		return finding{"files", thisComputer, Hint, fmt.Sprintf("a process may open only %s files and connections", console.Grouped(most)), "This is low for a manager, and for a server with many clients: raise the limit (ulimit -n)."}
	}
	return finding{"files", thisComputer, Fine, fmt.Sprintf("a process may open %s files and connections, and this one has %d", console.Grouped(most), used), ""}
}
