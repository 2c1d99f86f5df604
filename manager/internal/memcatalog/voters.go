package memcatalog

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A Voter is another manager of the group, as this one sees it.
type Voter struct {
	Manager storage.ManagerID
	Problem string // why its vote does not count in elections; "" if it counts
}

func (v Voter) String() string { return fmt.Sprintf("%s does not vote: %s", v.Manager, v.Problem) }

const (
	justStarted   = "it has just started"
	comparedFlags = "--peers, --ttl, --epsilon, --drift or --longest-lease"
	sameFlagsHint = "start all managers with the same --peers, --ttl, --epsilon, --drift, --longest-lease and --peer-key-file"
)

// voters returns the other managers, and whether their votes arrive. Each manager sends Flease
// messages to each other at least once per lease; so a manager that is silent for much longer has
// no vote, even if it replies to calls.
func (g *Group) voters() []Voter {
	status := g.node.Status()
	mismatched := make(map[flease.ID]bool)
	for _, s := range status.Strangers {
		mismatched[s.ID] = time.Since(s.Heard) < g.voteTimeout()
	}
	members := make(map[flease.ID]flease.MemberStatus)
	for _, m := range status.Members {
		members[m.ID] = m
	}
	var out []Voter
	for _, p := range g.cfg.Peers {
		if p.Manager != g.cfg.Self {
			out = append(out, Voter{p.Manager, g.problem(members[p.id()], mismatched[p.id()], g.replica.calls(p.Manager))})
		}
	}
	return out
}

// voteTimeout is how long a silent manager counts as a voter: three times the longest interval
// between its messages.
func (g *Group) voteTimeout() time.Duration {
	return 3 * max(mono.Drift(g.cfg.Drift).Stretch(g.cfg.Lease), g.cfg.Lease+2*g.cfg.Epsilon)
}

// problem returns why a manager does not vote, and what to do about it; "" if it votes.
func (g *Group) problem(m flease.MemberStatus, mismatched bool, calls calls) string {
	switch {
	case mismatched:
		return "it was started with other " + comparedFlags + " than this one"
	case m.ClockOff != 0:
		return fmt.Sprintf("its wall clock is off by %v or more, which is above --epsilon", m.ClockOff.Abs())
	case time.Since(m.Heard) < g.voteTimeout() && m.Waits:
		return justStarted
	case time.Since(m.Heard) < g.voteTimeout() && calls.made && calls.err != nil:
		return fmt.Sprintf("its datagrams arrive, but calls to it fail: %v", calls.err)
	case time.Since(m.Heard) < g.voteTimeout():
		return ""
	case calls.alive() && calls.err != nil:
		return "its datagrams cannot be read, and it rejects this leader: it was started with another --peer-key-file, or with other " + comparedFlags
	case calls.alive():
		return "it replies to calls, but its datagrams do not arrive: check the firewall between them"
	case calls.made:
		return "no message arrives from it: it is down or unreachable"
	}
	return "no message arrives from it: it is down, unreachable, or has another --peer-key-file"
}

// NonVoters returns the other managers that do not vote.
func (g *Group) NonVoters() (out []Voter) {
	for _, v := range g.voters() {
		if v.Problem != "" {
			out = append(out, v)
		}
	}
	return out
}

// StopRisk returns why no manager of the group may be stopped: as far as this one can see, the
// remaining voters might be fewer than a majority. It returns "" if one may be stopped.
func (g *Group) StopRisk() string {
	if why := g.NotReadyReason(); why != "" {
		return why
	}
	nonVoters := g.NonVoters()
	if left := len(g.cfg.Peers) - len(nonVoters) - 1; 2*left > len(g.cfg.Peers) {
		return ""
	}
	return Describe(nonVoters)
}

// Describe renders managers that do not vote, with their problems.
func Describe(nonVoters []Voter) string {
	var all []string
	for _, v := range nonVoters {
		all = append(all, v.String())
	}
	return strings.Join(all, "; ")
}

// Ready reports whether this manager votes in elections and has the catalog. A restarted manager
// needs some seconds for both. It depends on this manager alone: see [Group.StopRisk] for the
// others. It is cheap.
func (g *Group) Ready() bool { return g.voting.Load() && !g.deaf.Load() && g.replica.informed() }

// NotReadyReason returns why this manager is not ready; "" if it is.
func (g *Group) NotReadyReason() string {
	switch {
	case g.Ready():
		return ""
	case g.MismatchReason() != "":
		return g.MismatchReason()
	case !g.voting.Load():
		return "it has just started, and waits until its votes from before the restart have expired"
	case g.deaf.Load():
		return "it does not vote, because the leader's datagrams do not arrive here: check the firewall between them"
	}
	return "it has not received the namespaces yet"
}

// MismatchReason reports that other managers have other settings than this one, so that it does
// not take part; "" if no such manager sent a message recently.
func (g *Group) MismatchReason() string {
	if from := g.replica.mismatchedLeader(); from != "" {
		return fmt.Sprintf("the leader %s was started with another --peer-key-file, or with other %s, than this one: %s", from, comparedFlags, sameFlagsHint)
	}
	if g.voting.Load() {
		return "" // the mismatched managers do not take part
	}
	status := g.node.Status()
	for _, s := range status.Strangers {
		if time.Since(s.Heard) < g.voteTimeout() {
			return fmt.Sprintf("%s was started with other %s than this one: %s", g.cfg.manager(s.ID), comparedFlags, sameFlagsHint)
		}
	}
	return ""
}
