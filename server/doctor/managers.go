package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

// diagnose says what to make of an exam. It has no side effects.
func diagnose(e *exam) []finding {
	var out []finding
	for _, m := range e.managers {
		out = append(out, diagnoseReach(m))
	}
	out = append(out, diagnoseOwnTLS(&e.tls)...)
	out = append(out, diagnoseShown(e)...)
	if out = append(out, diagnoseLeader(e)...); !slices.ContainsFunc(e.managers, (*managerExam).answers) {
		return out // all else would only repeat it
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
		out = append(out, finding{"spaces", "", Wrong, "the namespaces could not be looked at: " + cli.OneLine(e.failed), "Ask again when there is a leader."})
	}
	for _, s := range e.spaces {
		out = append(out, diagnoseSpace(s)...)
	}
	out = append(out, diagnoseLookups(e)...)
	return append(out, diagnoseFiles())
}

func (m *managerExam) answers() bool { return m.err == nil }

// slowAnswer is what an answer from the next room stays far below.
const slowAnswer = 250 * time.Millisecond

func diagnoseReach(m *managerExam) finding {
	switch {
	case m.err != nil && cli.SecureAdvice(m.err) != "":
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err), cli.SecureAdvice(m.err)}
	case m.err != nil && m.listens:
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err) + ", though it takes connections", "A manager that waits for its store, or for a majority of its group, does so: its log and /readyz on its --http address say what for. Start the others of the group."}
	case m.err != nil:
		return finding{"reach", m.addr, Wrong, cli.OneLine(m.err), "Is it running, is that its address, and does a firewall let this computer through?"}
	case m.fastest > slowAnswer:
		return finding{"reach", m.addr, Hint, "answers within " + console.Brief(m.fastest) + " at best", "It is far away, or its computer is overloaded."}
	}
	return finding{"reach", m.addr, Fine, "answers within " + briefer(m.fastest), ""}
}

// briefer has more digits for what takes less than a millisecond.
func briefer(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return console.Brief(d)
}

// diagnoseLeader wants all managers to name the same leader and term.
func diagnoseLeader(e *exam) []finding {
	var out []finding
	told := make(map[string][]string) // leader and term, to who says so
	for _, m := range e.managers {
		if !m.answers() {
			continue
		}
		s := m.status
		if why := s.GetProblem(); why != "" {
			out = append(out, finding{"leader", m.addr, Wrong, why, "Leases go on until they run out, and nothing else does: look at the log of this manager."})
		}
		for _, w := range s.GetWarnings() {
			f := finding{"group", m.addr, Hint, w, "Until that is over, the group bears one failure less."}
			if !slices.ContainsFunc(out, func(o finding) bool { return o.Check == f.Check && o.Text == f.Text }) {
				out = append(out, f)
			}
		}
		if s.GetLeader() != "" {
			leads := fmt.Sprintf("%s leads in term %d", s.GetLeader(), s.GetTerm())
			told[leads] = append(told[leads], m.addr)
		}
	}
	if len(told) == 1 {
		for leads, by := range told {
			out = append(out, finding{"leader", "", Fine, fmt.Sprintf("%s, says %s", leads, everybody(len(by))), ""})
		}
	}
	if len(told) > 1 {
		var versions []string
		for leads, by := range told {
			versions = append(versions, fmt.Sprintf("%s (%s)", leads, strings.Join(by, ", ")))
		}
		slices.Sort(versions)
		out = append(out, finding{
			"leader", "", Wrong, "managers do not agree: " + strings.Join(versions, "; "),
			"If it stays so for more than a few seconds, they are of different groups, or cannot reach each other: compare their --members, --peers or --etcd.",
		})
	}
	return out
}

func everybody(n int) string {
	if n == 1 {
		return "the one that was asked"
	}
	return fmt.Sprintf("all %d that answer", n)
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
		return []finding{{"build", "", Hint, strings.Join(builds, "; "), "Finish the upgrade: what is new works when all managers know it."}}
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
			out = append(out, finding{"member", m.Name, Wrong, "its store does not answer", "Start it; if it is gone for good, remove it with 'leasehold manager remove " + m.Name + "' and add another."})
		case m.Learner:
			out = append(out, finding{"member", m.Name, Hint, "it has not caught up yet, and does not vote", ""})
		}
	}
	n := len(e.members)
	switch {
	case n == 1:
		out = append(out, finding{"member", "", Hint, "there is one manager, and no other takes over when it dies", "Let two more join with 'leasehold manager run --join'."})
	case n%2 == 0:
		out = append(out, finding{"member", "", Hint, fmt.Sprintf("%d managers bear no more failures than %d", n, n-1), "Add one, or remove one."})
	case len(out) == 0:
		out = append(out, finding{"member", "", Fine, fmt.Sprintf("the stores of all %d managers answer", n), ""})
	}
	if n > len(e.managers) {
		out = append(out, finding{"member", "", Hint, fmt.Sprintf("the group has %d managers, and %d were asked", n, len(e.managers)), "Name all of them with --managers, so that all are checked."})
	}
	return out
}

// Shares of a limit from which on something is said.
const (
	muchUsed    = 0.8
	tooMuchUsed = 0.95
)

// diagnoseLimits has a line for each limit that is near, and one for all others.
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
		return "When it is full nothing is granted any more: delete namespaces that nobody needs, or start managers with a larger --quota."
	case "open files":
		return "Raise the limit of the process (LimitNOFILE= of its unit, ulimit -n)."
	}
	return "Let some connect to other managers of the group."
}

func diagnoseHealth(m *managerExam) finding {
	at, scheme := httpOf(m.addr, m.status.GetHttp()), "http://"
	if m.shown != nil {
		scheme = "https://"
	}
	switch {
	case m.status.GetHttp() == "":
		return finding{"http", m.addr, skipped, "it serves no HTTP, or is too old to say where", ""}
	case at == "":
		return finding{"http", m.addr, skipped, "it is at " + m.status.GetHttp() + " of its own computer alone", "Ask there: 'curl " + scheme + m.status.GetHttp() + "/readyz'."}
	case m.health != nil:
		return finding{"http", m.addr, Hint, "no answer from " + scheme + at + "/readyz: " + cli.OneLine(m.health), "Orchestrators, Prometheus and browsers need --http where they reach it."}
	case m.unhealthy != "":
		return finding{"http", m.addr, Wrong, "it is not ready: " + strings.Join(strings.Fields(m.unhealthy), " "), "Look at its log."}
	}
	return finding{"http", m.addr, Fine, scheme + at + " says that it is ready", ""}
}

// leastFiles is what a process should be able to open that serves many.
const leastFiles = 4096

func diagnoseFiles() finding {
	used, most, known := daemon.OpenFiles()
	switch {
	case !known:
		return finding{"files", thisComputer, skipped, "this system does not say how many files a process may open", ""}
	case most < leastFiles:
		return finding{"files", thisComputer, Hint, fmt.Sprintf("a process may open %s files and connections", console.Grouped(most)), "That is little for a manager, and for a server with many callers: raise the limit (ulimit -n)."}
	}
	return finding{"files", thisComputer, Fine, fmt.Sprintf("a process may open %s files and connections, and this one has %d", console.Grouped(most), used), ""}
}
