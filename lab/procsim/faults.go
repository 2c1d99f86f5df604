package procsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// A fault is a kind of fault.
type fault struct {
	name   string
	weight int // how often worlds have it; 0: only on request
	// fits reports whether it is possible in a world; nil: in all.
	fits func(p *plan) bool
	// inflict injects it, and returns a description; "" if there was no target.
	inflict func(w *world) string
}

// Faults returns the names of all kinds, without those that worlds have only on request.
func Faults() (names []string) {
	for _, f := range faults {
		if f.weight > 0 {
			names = append(names, f.name)
		}
	}
	return names
}

func stored(p *plan) bool { return !p.diskless }

// faults are all kinds. The order is part of a seed's meaning.
var faults = []fault{
	{"owner-crash", 2, nil, (*world).crashOwner},
	{"owner-leave", 1, nil, (*world).leaveOwner},
	{"owner-pause", 1, nil, func(w *world) string { return w.pauseOwner(false) }},
	{"owner-suspend", 1, nil, func(w *world) string { return w.pauseOwner(true) }},
	{"owner-cut", 1, nil, (*world).cutOwner},
	{"link-reset", 1, nil, (*world).resetLink},
	{"manager-crash", 2, nil, (*world).crashManager},
	{"manager-stop", 3, nil, (*world).resign},
	{"manager-pause", 1, nil, func(w *world) string { return w.pauseManager(false) }},
	{"manager-suspend", 1, nil, func(w *world) string { return w.pauseManager(true) }},
	{"store-lag", 4, func(p *plan) bool { return stored(p) && len(p.ttl) > 1 }, (*world).lagStore},
	{"store-errors", 1, stored, (*world).failStore},
	{"outage", 2, nil, (*world).outage},
	{"store-restore", 3, stored, func(w *world) string { return w.restore(w.clocks.apart) }},
	// Only owners know the numbers of a lost takeover by a clock that others have not passed yet: see the known limits in
	// docs/ARCHITECTURE.md.
	{"store-restore-early", 0, stored, func(w *world) string { return w.restore(0) }},
	{"clock-step", 1, stored, (*world).stepClock},
	{"clock-back", 1, func(p *plan) bool { return p.diskless }, (*world).setBack},
	{"lookup-cut", 1, nil, (*world).cutCaller},
	{"lookup-restart", 1, nil, (*world).restartCaller},
	{"liar", 4, nil, (*world).lie},
}

// calm is the time in which messages arrive, and a decision is committed and takes effect.
func (w *world) calm() time.Duration {
	return 3*time.Second + 30*(w.latency+w.jitter)
}

// takeover is the longest time from the failure of a leader to the next one.
func (w *world) takeover() time.Duration {
	return slices.Max(w.ttl)*12/10*12/10 + w.calm()
}

// due is the time when no fault excuses anything any more.
func (w *world) due() time.Time {
	due := time.Now()
	for _, s := range w.spaces {
		due = later(due, later(s.due(), w.group.due()).Add(2*s.stale))
		for _, v := range s.servers {
			due = later(due, v.due())
		}
		for _, c := range s.callers {
			due = later(due, c.due().Add(2*s.stale))
		}
	}
	return due
}

// disturb excuses effects on all keys: managers or the store fail for a time, so that the successor may have to wait for
// all leases.
func (w *world) disturb(d time.Duration) {
	end := time.Now().Add(d + w.takeover())
	if w.diskless { // a group that has lost its memory waits for all leases
		end = end.Add(w.longest() + 10*time.Second)
	}
	w.group.until(end.Add(w.longest())) // lookups get no table before a census or an uncertain takeover is over
	for _, s := range w.spaces {
		s.until(end.Add(2*s.hold() + s.lease))
		for _, v := range s.servers {
			v.until(end.Add(2 * s.hold()))
		}
	}
}

// change excuses the time until the leader has changed. A successor waits for the lease of an owner that has ended
// before.
func (w *world) change() {
	end := time.Now().Add(w.takeover())
	w.group.until(end)
	for _, s := range w.spaces {
		if w.diskless || time.Now().Before(s.due()) { // a census waits for owners that leave
			s.until(end.Add(s.hold()))
		}
		s.until(end.Add(w.calm()))
	}
}

// hurt excuses the effects of an owner that is silent for a time.
func (w *world) hurt(v *server, d time.Duration) {
	end := time.Now().Add(d + v.space.hold() + 2*w.calm())
	v.until(end.Add(v.space.hold()))
	v.space.until(end)
}

// arrive excuses the time in which an owner joins or leaves.
func (w *world) arrive(s *space) { s.until(time.Now().Add(w.calm())) }

// anyServer returns a running server that has joined.
func (w *world) anyServer() *server {
	s := pick(w.random, w.spaces...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := pick(w.random, s.servers...); v.up() != nil {
		return v
	}
	return nil
}

// leader returns the manager that leads; nil if none does, or it does not run.
func (w *world) leader() *managerProc {
	name, _ := w.operator.status()
	for _, m := range w.managers {
		if m.addr() == name && m.runs() {
			return m
		}
	}
	return nil
}

func (w *world) anyManager() *managerProc {
	if m := pick(w.random, w.managers...); m.runs() {
		return m
	}
	return nil
}

// span draws a duration: short ones are as frequent as long ones.
func (w *world) span(least, most time.Duration) time.Duration {
	d := least
	for d < most && w.random.IntN(3) > 0 {
		d *= 2
	}
	return min(most, between(w.random, d/2, d))
}

func (w *world) crashOwner() string {
	v := w.anyServer()
	if v == nil {
		return ""
	}
	d := w.span(time.Second, 3*v.space.hold())
	w.killServer(v)
	w.hurt(v, 0)
	w.after(d, func() { w.rejoin(v) })
	return fmt.Sprintf("%s for %v", v.name, d)
}

// rejoin starts an owner again. It waits until the leases of its predecessor have expired.
func (w *world) rejoin(v *server) {
	w.startServer(v)
	w.hurt(v, 0)
}

func (w *world) leaveOwner() string {
	v := w.anyServer()
	if v == nil {
		return ""
	}
	d := w.span(8*time.Second, time.Minute)
	w.leave(v, d)
	return fmt.Sprintf("%s for %v", v.name, d)
}

func (w *world) leave(v *server, d time.Duration) {
	gone := w.stopServer(v)
	w.arrive(v.space)
	w.after(d, func() { w.returns(v, gone) })
}

// returns starts an owner again when its former process has ended.
func (w *world) returns(v *server, gone <-chan struct{}) {
	select {
	case <-gone:
		w.startServer(v)
		w.arrive(v.space)
	default:
		w.after(time.Second, func() { w.returns(v, gone) })
	}
}

func (w *world) pauseOwner(suspend bool) string {
	v := w.anyServer()
	if v == nil {
		return ""
	}
	d := w.span(100*time.Millisecond, 4*v.space.hold())
	w.freeze(v.host, nil)
	if suspend {
		v.suspend(d)
	}
	w.hurt(v, d)
	node := v.node
	w.after(d, func() {
		if v.node == node {
			w.thaw(v.host, nil)
		}
	})
	return fmt.Sprintf("%s for %v", v.name, d)
}

func (w *world) cutOwner() string {
	v := w.anyServer()
	if v == nil {
		return ""
	}
	d, oneWay, some := w.span(time.Second, 4*v.space.hold()), w.random.IntN(3), w.random.IntN(2) == 0
	for _, m := range w.managers {
		if some && w.random.IntN(2) == 0 {
			continue
		}
		w.cutLink(v.name, m.name, oneWay)
		w.after(d, func() { w.net.Heal(v.name, m.name) })
	}
	w.hurt(v, d)
	return fmt.Sprintf("%s for %v, directions %d, some managers only %t", v.name, d, oneWay, some)
}

// cutLink cuts a link, in one direction or in both.
func (w *world) cutLink(a, b string, directions int) {
	switch directions {
	case 0:
		w.net.CutOneWay(a, b)
	case 1:
		w.net.CutOneWay(b, a)
	default:
		w.net.Cut(a, b)
	}
}

func (w *world) resetLink() string {
	v, m := w.anyServer(), w.anyManager()
	if v == nil || m == nil {
		return ""
	}
	w.net.Reset(v.name, m.name)
	w.arrive(v.space)
	return fmt.Sprintf("%s to %s", v.name, m.name)
}

func (w *world) crashManager() string {
	m := w.anyManager()
	if m == nil {
		return ""
	}
	d := w.span(time.Second, time.Minute)
	w.disturb(d)
	w.killManager(m)
	w.after(d, func() {
		w.startManager(m)
		w.recreate()
	})
	return fmt.Sprintf("%s for %v", m.name, d)
}

// resign ends a manager cleanly while an owner comes or goes. Its successor, which has followed the record for a while,
// acts at once.
func (w *world) resign() string {
	m, v := w.leader(), w.anyServer()
	if m == nil {
		return ""
	}
	d := w.span(4*time.Second, 30*time.Second)
	missing := slices.ContainsFunc(w.managers, func(o *managerProc) bool { return !o.runs() || time.Since(o.since) < 15*time.Second })
	if missing || len(w.managers) == 1 || time.Now().Before(w.group.due()) {
		w.disturb(15*time.Second + d)
	} else {
		w.change()
	}
	w.stopManager(m, func() {
		w.after(d, func() {
			w.startManager(m)
			w.joins()
		})
	})
	if v != nil && len(v.space.servers) > 1 && w.random.IntN(2) == 0 {
		w.leave(v, w.span(8*time.Second, time.Minute))
		return fmt.Sprintf("%s for %v, and %s leaves", m.name, d, v.name)
	}
	return fmt.Sprintf("%s for %v", m.name, d)
}

// joins excuses what the start of a manager does to the election of a diskless group.
func (w *world) joins() {
	if w.diskless {
		w.change()
	}
}

func (w *world) pauseManager(suspend bool) string {
	m := w.anyManager()
	if m == nil {
		return ""
	}
	d := w.span(100*time.Millisecond, time.Minute)
	w.freeze(m.host, m)
	if suspend {
		m.suspend(d)
	}
	w.disturb(d)
	node := m.node
	w.after(d, func() {
		if m.node == node {
			w.thaw(m.host, m)
		}
	})
	return fmt.Sprintf("%s for %v, suspended %t", m.name, d, suspend)
}

// lagStore slows down the store of one manager. The others can lead: only the time until one does is excused.
func (w *world) lagStore() string {
	m := w.leader()
	if w.random.IntN(4) == 0 {
		m = w.anyManager()
	}
	if m == nil || slices.ContainsFunc(w.managers, func(o *managerProc) bool { return !o.runs() || o.path.lag.most > 0 }) {
		return ""
	}
	ttl := w.ttl[m.number]
	l := lag{
		base: time.Millisecond, most: between(w.random, ttl*4/10, ttl*11/10), since: time.Now(),
		grows: pick(w.random, 0, 0, 20*time.Second), bursts: w.random.IntN(3) == 0, reads: w.random.IntN(4) == 0,
	}
	d := between(w.random, 2*time.Minute, 5*time.Minute)
	path := m.path
	w.db.set(func() { path.lag = l })
	w.disturb(l.grows + 10*slices.Max(w.ttl))
	w.after(d, func() { w.db.set(func() { path.lag = lag{base: time.Millisecond} }) })
	return fmt.Sprintf("%s for %v: %+v", m.name, d, l)
}

func (w *world) failStore() string {
	share, d := 0.05+0.4*w.random.Float64(), w.span(2*time.Second, time.Minute)
	set := func(share float64) {
		w.db.set(func() {
			for _, m := range w.managers {
				m.path.fail = share
			}
		})
	}
	set(share)
	w.disturb(d)
	w.after(d, func() { set(0) })
	return fmt.Sprintf("%.2f of the writes for %v", share, d)
}

// outage stops or kills all managers, or the store.
func (w *world) outage() string {
	if time.Now().Before(w.group.due()) {
		return "" // the previous one is not over
	}
	d := w.span(time.Second, 8*time.Hour)
	w.disturb(d + 5*time.Second)
	if !w.diskless && w.random.IntN(3) == 0 {
		w.db.set(func() { w.db.down = true })
		w.after(d, func() { w.db.set(func() { w.db.down = false }) })
		return fmt.Sprintf("the store for %v", d)
	}
	kill := w.random.IntN(2) == 0
	for _, m := range w.managers {
		switch {
		case !m.runs():
		case kill:
			w.killManager(m)
			w.after(d+between(w.random, 0, 500*time.Millisecond), func() { w.startManager(m) })
		default:
			w.freeze(m.host, m)
			node := m.node
			w.after(d, func() {
				if m.node == node {
					w.thaw(m.host, m)
				}
			})
		}
	}
	if kill {
		w.after(d+time.Second, w.recreate)
		w.disturb(d + 10*time.Second + w.longest())
	}
	return fmt.Sprintf("all managers for %v, killed %t", d, kill)
}

// restore restores the store from a backup that is made now. All managers are down for that time, and restarted with it.
func (w *world) restore(down time.Duration) string {
	if time.Now().Before(w.group.due()) || slices.ContainsFunc(w.managers, func(m *managerProc) bool { return !m.runs() }) {
		return ""
	}
	backup, age := w.db.Backup(), between(w.random, 10*time.Second, 5*time.Minute)
	kind := w.random.IntN(3)
	if w.random.IntN(3) > 0 { // with an uncertain takeover in between, and grants after it
		age += 2*time.Minute + 3*w.longest()
		w.stopAll(70*time.Second + w.longest())
		for range 3 {
			w.after(age-between(w.random, 0, time.Minute), func() {
				if v := w.anyServer(); v != nil {
					w.leave(v, w.span(8*time.Second, time.Minute))
				}
			})
		}
	}
	w.after(age, func() { w.restoreFrom(backup, age, down, kind) })
	return fmt.Sprintf("in %v, kind %d", age, kind)
}

// restoreFrom restores a backup: into a new cluster, into copied directories, or in place, which takes minutes.
func (w *world) restoreFrom(backup *memdb.DB, age, down time.Duration, kind int) {
	w.logf("the store is restored from a backup that is %v old, kind %d", age, kind)
	w.restored = true
	down += time.Second
	w.db.set(func() {
		switch kind {
		case 0:
			w.db.identity.Cluster += "+"
		case 1:
			w.db.identity.Directory += "+"
		default:
			down += 2 * time.Minute
		}
	})
	w.stopAll(down)
	w.after(500*time.Millisecond, func() { w.db.Restore(backup, false) })
}

// stopAll kills all managers, and starts them again in a random order.
func (w *world) stopAll(d time.Duration) {
	w.disturb(d + 20*time.Second + w.longest())
	for _, i := range w.random.Perm(len(w.managers)) {
		m := w.managers[i]
		w.killManager(m)
		w.after(d, func() { w.startManager(m) })
		d += between(w.random, 0, 5*time.Second)
	}
}

// stepClock sets the wall clock of a process. Nothing is excused.
func (w *world) stepClock() string {
	hosts := w.hosts()
	h := pick(w.random, hosts...)
	by := w.span(time.Second, 48*time.Hour) * time.Duration(pick(w.random, -1, 1))
	h.step(by)
	return fmt.Sprintf("%s by %v", h.name, by)
}

func (w *world) hosts() (all []*host) {
	for _, m := range w.managers {
		all = append(all, m.host)
	}
	for _, s := range w.spaces {
		for _, v := range s.servers {
			all = append(all, v.host)
		}
		for _, c := range s.callers {
			all = append(all, c.host)
		}
	}
	return all
}

// setBack restarts all managers of a diskless group with clocks that are set back.
func (w *world) setBack() string {
	if time.Now().Before(w.group.due()) || slices.ContainsFunc(w.managers, func(m *managerProc) bool { return !m.runs() }) {
		return ""
	}
	by := w.span(10*time.Second, 4*time.Hour)
	w.disturb(90*time.Second + 2*w.longest())
	for _, m := range w.managers {
		w.killManager(m)
		m.step(-by)
		w.after(time.Second, func() { w.startManager(m) })
	}
	w.after(2*time.Second, w.recreate)
	return fmt.Sprintf("all managers by %v", by)
}

func (w *world) anyCaller() *caller {
	s := pick(w.random, w.spaces...)
	if c := pick(w.random, s.callers...); c.alive() {
		return c
	}
	return nil
}

func (w *world) cutCaller() string {
	c := w.anyCaller()
	if c == nil {
		return ""
	}
	d := w.span(time.Second, 5*c.space.stale)
	for _, m := range w.managers {
		w.net.Cut(c.name, m.name)
		w.after(d, func() { w.net.Heal(c.name, m.name) })
	}
	c.until(time.Now().Add(d + w.calm()))
	return fmt.Sprintf("%s for %v", c.name, d)
}

func (w *world) restartCaller() string {
	c := w.anyCaller()
	if c == nil {
		return ""
	}
	w.closeCaller(c)
	c.until(time.Now().Add(10*time.Second + w.calm()))
	w.after(between(w.random, time.Second, 5*time.Second), func() { w.startCaller(c) })
	return c.name
}
