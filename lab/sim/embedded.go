package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// In embedded worlds a manager and an owner are one process, as in package cluster: they end, stop and
// restart together. Each keeps a clock of its own, a stronger fault than a real process can have. Owners
// without a manager are members that do not vote.

// embed makes one process of a manager and an owner.
func (w *world) embed() {
	for i, m := range w.managers {
		o := w.owners[i]
		m.owner, o.manager = o, m
		m.mate, o.mate = o.host, m.host
		o.holder = &table.Holder{Owner: o.firstName()}
	}
}

// kill ends the process, with its owner.
func (m *managerHost) kill() {
	m.host.kill()
	if m.owner != nil {
		m.owner.end()
	}
}

// admit starts the owner of the process when the manager has the namespaces, as cluster.Join does.
func (m *managerHost) admit() {
	if m.owner == nil || m.admitting == m.epoch || !m.informed() {
		return
	}
	m.admitting = m.epoch
	epoch := m.epoch
	m.After(m.nemesis.span(0, time.Second), func() {
		if m.epoch != epoch {
			return
		}
		m.admitting = 0
		if m.stopped == 0 && m.informed() {
			m.owner.boot(m.owner.firstName())
		}
	})
}

// informed reports whether the process needs an owner, and its manager has the namespaces.
func (m *managerHost) informed() bool {
	if !m.alive || m.resigning || m.owner.alive {
		return false
	}
	c := m.memory.council.Catalog()
	return c != nil && c.Find(m.owner.space.name) != nil
}

// left ends the process of an owner that has left: its manager hands over the leadership first.
func (o *ownerHost) left() {
	o.end()
	if o.manager == nil {
		o.nemesis.ownerBack(o)
		return
	}
	o.manager.resigning = true
	o.Later(0, o.manager.endpoint, 0, managerproc.Election{Event: byrecord.Resign{}})
}

// crashMember kills a process, and restarts it under its name at once or later.
func (n *nemesis) crashMember(m *managerHost) {
	m.kill()
	n.hangUp(m)
	n.bootLater(m.host, m.boot)
}

// restartMembers restarts the processes that end, or whose clock is too slow.
func (n *nemesis) restartMembers() {
	for _, o := range n.owners {
		if o.manager != nil && o.alive && (o.beyond || o.leaving || o.parting) {
			o.manager.kill()
		}
	}
}

// mayRestart reports whether a rolling restart may stop a member: all others have joined.
func (o *ownerHost) mayRestart() bool {
	for _, other := range o.owners {
		if other != o && (!other.alive || other.parting || len(other.view.Kept) == 0 || other.manager != nil && other.manager.resigning) {
			return false
		}
	}
	return true
}
