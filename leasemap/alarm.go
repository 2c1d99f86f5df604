package leasemap

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

const (
	alarmScan        = 10 * time.Second // period of the search for alarms in the store, beyond those in memory
	alarmPage        = 1000             // names
	concurrentAlarms = 16
	minAlarmRetry    = time.Second
	maxAlarmRetry    = time.Minute
)

// An AlarmStore is a Store for maps with alarms. It keeps the field Alarm of records.
type AlarmStore interface {
	Store
	// Due returns the names with a key in a range and an alarm before an instant, in order, from the first after the given
	// one, at most as many as limit.
	Due(ctx context.Context, keys leasehold.Range, before time.Time, after string, limit int) ([]string, error)
}

// Alarm sets the alarm of the value, instead of one that it has; the zero Time cancels it. At that time the server that owns the
// name calls Config.OnAlarm. The alarm moves with the value, is saved with it, and ends with it.
func (e *Entry[V]) Alarm(at time.Time) { e.alarm, e.alarmed = at.Round(0), true } // without the monotonic clock, which ends with the process

// alarms are the pending alarms of the entries in memory, as long as those are in their shards.
type alarms[V any] struct {
	wake chan struct{} // when there is a new first one

	mu    sync.Mutex
	queue alarmQueue[V] // those that are not being fired
}

// An alarm belongs to a value: it stays in its entry until the value has another or is removed, also after the entry has
// left its shard, so that write-behind saves it.
type alarm[V any] struct {
	entry *entry[V]
	name  string
	at    time.Time
	next  time.Time     // the next attempt
	retry time.Duration // after the last attempt
	index int           // in the queue; -1 while it is fired
}

func newAlarms[V any]() *alarms[V] { return &alarms[V]{wake: make(chan struct{}, 1)} }

// alarmAt returns the time of the alarm of a locked entry, zero if it has none.
func (e *entry[V]) alarmAt() time.Time {
	if a := e.alarm.Load(); a != nil {
		return a.at
	}
	return time.Time{}
}

// setAlarm sets or removes the alarm of a locked entry.
func (m *Map[V]) setAlarm(e *entry[V], name string, at time.Time) {
	old := e.alarm.Load()
	if at.IsZero() && old == nil || old != nil && old.at.Equal(at) {
		return
	}
	m.alarms.drop(e)
	var a *alarm[V]
	if !at.IsZero() {
		a = &alarm[V]{entry: e, name: name, at: at, next: at, index: -1}
	}
	e.alarm.Store(a)
	m.alarms.schedule(e)
}

// schedule queues the alarm of an entry, unless the entry has left its shard.
func (s *alarms[V]) schedule(e *entry[V]) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := e.alarm.Load(); a != nil && a.index < 0 && !e.removed.Load() {
		s.push(a)
	}
}

// drop removes the alarm of an entry from the queue.
func (s *alarms[V]) drop(e *entry[V]) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := e.alarm.Load(); a != nil && a.index >= 0 {
		heap.Remove(&s.queue, a.index)
	}
}

func (s *alarms[V]) push(a *alarm[V]) {
	heap.Push(&s.queue, a)
	if a.index > 0 {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// due takes the alarms that are due from the queue, and returns the time until the next one.
func (s *alarms[V]) due(now time.Time) (due []*alarm[V], wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		if wait = s.queue[0].next.Sub(now); wait > 0 {
			return due, wait
		}
		due = append(due, heap.Pop(&s.queue).(*alarm[V])) //nolint:errcheck,forcetypeassert // it has no others
	}
	return due, forever
}

// again queues an alarm that was fired without success, and is still pending.
func (s *alarms[V]) again(a *alarm[V], now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.entry.alarm.Load() == a && !a.entry.removed.Load() {
		a.retry = min(max(2*a.retry, minAlarmRetry), maxAlarmRetry)
		a.next = now.Add(a.retry)
		s.push(a)
	}
}

// runAlarms fires alarms until the context ends.
func (m *Map[V]) runAlarms(ctx context.Context) {
	if m.alarms == nil {
		return
	}
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { m.runAlarmScan(ctx) })
	slots := make(chan struct{}, concurrentAlarms)
	for {
		due, wait := m.alarms.due(time.Now())
		for _, a := range due {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			others.Go(func() {
				defer func() { <-slots }()
				m.fire(ctx, a)
			})
		}
		next := time.NewTimer(min(wait, alarmScan)) // the clock of alarms may be set
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-m.alarms.wake:
		case <-next.C:
		}
		next.Stop()
	}
}

// fire calls OnAlarm in an operation, if this server owns the name and the alarm is still due. The alarm ends when the operation
// succeeds.
func (m *Map[V]) fire(ctx context.Context, a *alarm[V]) {
	_, _ = m.Do(ctx, a.name, func(e *Entry[V]) error {
		if at := e.alarm; at.IsZero() || at.After(time.Now()) {
			e.Keep()
			return nil
		}
		e.Alarm(time.Time{})
		return m.cfg.OnAlarm(ctx, a.name, e)
	})
	m.alarms.again(a, time.Now()) // has no effect after success
}

// runAlarmScan loads names with alarms that are not in memory, until the context ends.
func (m *Map[V]) runAlarmScan(ctx context.Context) {
	held, lists := m.leases.(interface{ Leases() []leasehold.Lease })
	if !lists || !m.cfg.storesAlarms() {
		return
	}
	tick := time.NewTicker(alarmScan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := time.Now().Add(alarmScan) // the next scan
		for _, l := range held.Leases() {
			m.scanAlarms(ctx, l, before)
		}
	}
}

// scanAlarms loads the names in a range whose alarms are due soon and that are not in memory: their last owner has crashed, or
// they were evicted. The next scan repeats what fails.
func (m *Map[V]) scanAlarms(ctx context.Context, l leasehold.Lease, before time.Time) {
	var loading sync.WaitGroup
	defer loading.Wait()
	slots := make(chan struct{}, m.cfg.MaxLoads)
	for after, more := "", true; more; {
		names, err := m.dueInStore(ctx, l.Range, before, after)
		if err != nil {
			return
		}
		for _, name := range names {
			if m.shard(m.cfg.Key(name)).has(name, l.Generation) {
				continue
			}
			slots <- struct{}{}
			loading.Go(func() {
				defer func() { <-slots }()
				_, _, _ = m.GetContext(ctx, name) // sets the alarm
			})
		}
		if more = len(names) == alarmPage; more {
			after = names[len(names)-1]
		}
	}
}

// has reports whether an operation has used a name in the tenure: it has loaded the value, with its alarm.
func (s *shard[V]) has(name string, g leasehold.Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e != nil && e.generation == g
}

func (m *Map[V]) dueInStore(ctx context.Context, keys leasehold.Range, before time.Time, after string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	return m.cfg.Store.(AlarmStore).Due(ctx, keys, before, after, alarmPage) //nolint:errcheck,forcetypeassert // see validateStore
}

// An alarmQueue is a heap by the next attempt.
type alarmQueue[V any] []*alarm[V]

func (q alarmQueue[V]) Len() int           { return len(q) }
func (q alarmQueue[V]) Less(i, j int) bool { return q[i].next.Before(q[j].next) }

func (q alarmQueue[V]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *alarmQueue[V]) Push(x any) {
	a := x.(*alarm[V]) //nolint:errcheck,forcetypeassert // it has no others
	a.index = len(*q)
	*q = append(*q, a)
}

// Pop implements heap.Interface.
func (q *alarmQueue[V]) Pop() any {
	last := len(*q) - 1
	a := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	a.index = -1
	return a
}
