package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A deathReport is a notice that a supervisor repeats until it is acknowledged. Its messages are lost, delayed,
// duplicated and misrouted like all others, and it outlives the process.
type deathReport struct {
	id     uint64 // 1 + index in world.reports
	owner  *ownerHost
	notice protocol.DeathNotice
	tries  int
	done   bool
}

// maxReports bounds the repetitions: a supervisor gives up when the lease has expired.
const maxReports = 60

// supervise draws whether a process has a supervisor, and its token.
func (o *ownerHost) supervise() {
	o.token = table.DeathToken{}
	if !o.cfg.Supervised || o.cfg.Agents || o.Chance(4) {
		return
	}
	randomBytes{o.Random}.Read(o.token[:]) //nolint:errcheck // it does not fail
	o.holder.DeathHash = o.token.Hash()
}

func (o *ownerHost) supervised() bool { return o.token != table.DeathToken{} }

// kill ends the process, with its manager.
func (o *ownerHost) kill() {
	o.end()
	if o.manager != nil {
		o.manager.host.kill()
	}
}

// end ends the owner. Its supervisor reports that, unless it ends as well: the whole host is lost.
func (o *ownerHost) end() {
	lived := o.alive
	o.host.kill()
	if lived && o.supervised() && (o.nemesis.healed || !o.Chance(6)) {
		o.report(o.death(), o.Below(calmDelay))
	}
}

// death is the notice about the process that runs, or ran last.
func (o *ownerHost) death() protocol.DeathNotice {
	return protocol.DeathNotice{Namespace: o.space.name, Owner: o.holder.Owner, Session: o.holder.Session, Token: o.token}
}

func (o *ownerHost) report(n protocol.DeathNotice, after time.Duration) {
	r := &deathReport{id: uint64(len(o.reports)) + 1, owner: o, notice: n}
	o.reports = append(o.reports, r)
	o.After(after, r.send)
}

// send sends the notice to all managers, and repeats that later.
func (r *deathReport) send() {
	if r.done || r.tries == maxReports {
		return
	}
	o := r.owner
	for _, m := range o.managers {
		o.send(o.endpoint, m.endpoint, r)
	}
	o.After(min(20*time.Millisecond<<min(r.tries, 6), time.Second), r.send)
	r.tries++
}

// deathReply is a manager's reply to a report.
type deathReply struct {
	*deathReport
	outcome protocol.DeathOutcome
}

func (r deathReply) receive() {
	r.done = r.done || r.outcome != protocol.DeathUndecided
}

// died passes a notice to the machine.
func (m *managerHost) died(now mono.Instant, r *deathReport) {
	m.do(m.node.Step(now, managerproc.Died{ID: r.id, DeathNotice: &r.notice}))
}

func (m *managerHost) replyDeath(a managerproc.DeathReply) {
	r := m.reports[a.ID-1]
	m.Branches["death: "+outcomeNames[a.Outcome]]++
	m.Printf("%s replies to the death of %s: %s", m.label, r.notice.Owner, outcomeNames[a.Outcome])
	m.oracle.checkAcknowledged(m, r, a.Outcome)
	m.send(m.endpoint, r.owner.endpoint, deathReply{r, a.Outcome})
}

var outcomeNames = map[protocol.DeathOutcome]string{
	protocol.DeathUndecided: "undecided", protocol.DeathRecorded: "recorded", protocol.DeathUnknown: "unknown", protocol.DeathRefused: "refused",
}

// forge reports the death of a live process, as an attacker with the identity of its owner could: with a guess, a
// token of another process, a former one of the same owner among them, or under the name of another owner.
func (o *ownerHost) forge() {
	n := o.death()
	switch o.Random.IntN(4) {
	case 0:
		n.Token[o.Random.IntN(len(n.Token))]++
	case 1:
		n.Token = table.DeathToken(o.holder.DeathHash)
	case 2:
		if len(o.reports) == 0 {
			return
		}
		n.Token = o.reports[o.Random.IntN(len(o.reports))].notice.Token
	case 3:
		n.Owner = leasehold.OwnerID("not" + string(n.Owner))
	}
	if n != o.death() {
		o.report(n, 0)
	}
}
