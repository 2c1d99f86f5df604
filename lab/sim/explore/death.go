package explore

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim"
)

// token returns the token of a process's supervisor: the same for both owners, so that they remain symmetric.
func token(epoch uint8) table.DeathToken { return table.DeathToken{1, epoch} }

// report sends the notice of a process that has ended to both managers. They are messages like others: delivered in
// any order, lost with their manager, or duplicated.
func (st *state) report(i int, epoch uint8) {
	if st.scenario.From != Supervised || i < managers || i >= follower {
		return
	}
	n := &protocol.DeathNotice{Namespace: namespace, Owner: ownerNames[i-managers], Session: session(i, epoch), Token: token(epoch)}
	for m := range managers {
		st.post(&message{to: m, what: managerproc.Died{ID: uint64(i)<<8 | uint64(epoch), DeathNotice: n}})
	}
}

// sessionRuns reports whether the process of a session runs: each host runs one process at a time.
func (st *state) sessionRuns(s leasehold.Session) bool { return st.procs[s[1]].epoch == s[2] }

// checkAcknowledged is I12: the process of an acknowledged notice has ended, and the store has no lease of it.
func (st *state) checkAcknowledged(a managerproc.DeathReply) {
	if a.Outcome != protocol.DeathRecorded {
		return
	}
	st.died = true
	dead := session(int(a.ID>>8), uint8(a.ID))
	if st.sessionRuns(dead) {
		st.violated(sim.I12Death, "the death of session %s is acknowledged, and it runs", dead.Short())
	}
	for r, e := range st.store.tables[len(st.store.tables)-1].All() {
		if !e.Vacant() && e.Holder.Session == dead {
			st.violated(sim.I12Death, "the death of session %s is acknowledged, and the store has its lease on %v", dead.Short(), r)
		}
	}
}

// checkDied is I12 at the store: leases end by a notice only if their process has ended.
func (st *state) checkDied(changes []table.Change) {
	for i := range changes {
		if c := &changes[i]; c.Kind == table.Vacated && c.Cause == leasehold.CauseDied && st.sessionRuns(c.Holder.Session) {
			st.violated(sim.I12Death, "a lease of session %s ends by a notice, and it runs", c.Holder.Session.Short())
		}
	}
}
