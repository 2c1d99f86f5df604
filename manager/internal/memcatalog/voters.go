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
	// Mute is why it does not count among those who agree on who leads; "" if it does.
	Mute string
}

// String names it, and says what is wrong with it.
func (v Voter) String() string { return fmt.Sprintf("%s does not vote: %s", v.Manager, v.Mute) }

const (
	justStarted   = "it has just started"
	toldOtherwise = "--peers, --ttl, --epsilon, --drift or --longest-lease"
	tellAlike     = "give all managers the same --peers, --ttl, --epsilon, --drift, --longest-lease and --peer-key-file"
)

// Voters returns the other managers, and whether their votes are heard. All of them
// speak to each other at least once in the time that a lease takes to be free again;
// so who is silent for much longer has no vote, whatever else it answers.
func (g *Group) Voters() []Voter {
	status := g.node.Status()
	strange := make(map[flease.ID]bool)
	for _, s := range status.Strangers {
		strange[s.ID] = time.Since(s.Heard) < g.hearing()
	}
	members := make(map[flease.ID]flease.MemberStatus)
	for _, m := range status.Members {
		members[m.ID] = m
	}
	var out []Voter
	for _, p := range g.cfg.Peers {
		if p.Manager != g.cfg.Self {
			out = append(out, Voter{p.Manager, g.mute(members[p.id()], strange[p.id()], g.replica.calls(p.Manager))})
		}
	}
	return out
}

// hearing is for how long a manager that is not heard still has a vote: three times
// what it takes at most until it speaks.
func (g *Group) hearing() time.Duration {
	return 3 * max(mono.Drift(g.cfg.Drift).Stretch(g.cfg.Lease), g.cfg.Lease+2*g.cfg.Epsilon)
}

// mute says why a manager does not vote, and what to do about it; "" if it does.
func (g *Group) mute(m flease.MemberStatus, stranger bool, calls calls) string {
	switch {
	case stranger:
		return "it was started with other " + toldOtherwise + " than this one"
	case m.ClockOff != 0:
		return fmt.Sprintf("its wall clock is off by %v or more, which --epsilon does not allow", m.ClockOff.Abs())
	case time.Since(m.Heard) < g.hearing() && m.Waits:
		return justStarted
	case time.Since(m.Heard) < g.hearing() && calls.made && calls.why != nil:
		return fmt.Sprintf("it is heard, and does not answer when it is called: %v", calls.why)
	case time.Since(m.Heard) < g.hearing():
		return ""
	case calls.alive() && calls.why != nil:
		return "its datagrams cannot be read, and it refuses to be led: it was started with another --peer-key-file, or with other " + toldOtherwise
	case calls.alive():
		return "it answers when it is called, but its datagrams do not arrive: look at the firewall between them"
	case calls.made:
		return "nothing is heard from it: it is down, or out of reach"
	}
	return "nothing is heard from it: it is down, out of reach, or has another --peer-key-file"
}

// Mute returns those who do not vote.
func (g *Group) Mute() (out []Voter) {
	for _, v := range g.Voters() {
		if v.Mute != "" {
			out = append(out, v)
		}
	}
	return out
}

// Indispensable says why the group cannot do without another of its managers, as far
// as this one knows: those who would be left might be too few to agree on who leads.
// It returns "" if it can.
func (g *Group) Indispensable() string {
	if why := g.Uninformed(); why != "" {
		return why
	}
	mute := g.Mute()
	if left := len(g.cfg.Peers) - len(mute) - 1; 2*left > len(g.cfg.Peers) {
		return ""
	}
	return Sentences(mute)
}

// Sentences says of each manager what is wrong with it.
func Sentences(mute []Voter) string {
	var all []string
	for _, v := range mute {
		all = append(all, v.String())
	}
	return strings.Join(all, "; ")
}

// Informed reports whether the group can do without another of its managers as far as
// this one is concerned: it takes part in the agreement about who leads, and knows the
// namespaces. A manager that was restarted needs some seconds for both. It says nothing
// of the others: see [Group.Indispensable]. It is cheap.
func (g *Group) Informed() bool { return g.votes.Load() && !g.silent.Load() && g.replica.informed() }

// Uninformed says why this manager is not informed; "" if it is.
func (g *Group) Uninformed() string {
	switch {
	case g.Informed():
		return ""
	case g.Outsider() != "":
		return g.Outsider()
	case !g.votes.Load():
		return "it has just started, and waits until what it may have promised before is over"
	case g.silent.Load():
		return "it does not vote, because the leader's datagrams do not arrive here: look at the firewall between them"
	}
	return "it has not been told the namespaces yet"
}

// Outsider says that other managers were started otherwise than this one, so that it
// takes no part; "" if none was heard lately.
func (g *Group) Outsider() string {
	if from := g.replica.strangeLeader(); from != "" {
		return fmt.Sprintf("%s leads, and was started with another --peer-key-file, or with other %s, than this one: %s", from, toldOtherwise, tellAlike)
	}
	if g.votes.Load() {
		return "" // then it is the strangers that take no part
	}
	status := g.node.Status()
	for _, s := range status.Strangers {
		if time.Since(s.Heard) < g.hearing() {
			return fmt.Sprintf("%s was started with other %s than this one: %s", g.cfg.manager(s.ID), toldOtherwise, tellAlike)
		}
	}
	return ""
}
