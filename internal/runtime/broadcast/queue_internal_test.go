package broadcast

import (
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// change returns a broadcast of the changes after one LSN, up to another.
func change(from, to int) *protocol.LookupReply {
	r := &protocol.LookupReply{Namespace: "pool", Term: 1, Leader: "m", From: leasehold.LSN(from), LSN: leasehold.LSN(to)}
	for i := from; i < to; i++ {
		r.Changes = append(r.Changes, table.Change{
			LSN: leasehold.LSN(i + 1), Kind: table.Granted, Generation: leasehold.Generation(i + 1),
			Holder: &table.Holder{Owner: "o", Session: leasehold.Session{1}, Addr: "o:80", Weight: 1},
		})
	}
	return r
}

// answerAt returns an answer that has all changes up to an LSN.
func answerAt(term leasehold.Term, lsn int) message {
	r := &protocol.LookupReply{Namespace: "pool", Leader: "m", Term: term, LSN: leasehold.LSN(lsn)}
	return message{update: &update{reply: r}, answer: r}
}

// drain takes all messages as a handler does.
func (q *queue) drain() (all []message) {
	if !q.acquire() {
		return nil
	}
	for {
		m, ok := q.take()
		if !ok {
			return all
		}
		all = append(all, m)
	}
}

// A reply replaces an earlier one, and the updates that it includes.
func TestQueue(t *testing.T) {
	var q queue
	q.putReply(answerAt(1, 1))
	q.addUpdates(updates(change(1, 2), change(2, 3)))
	q.putReply(answerAt(1, 2))
	all := q.drain()
	if len(all) != 2 || all[0].answer == nil || all[0].answer.LSN != 2 || all[1].update.reply.LSN != 3 {
		t.Errorf("sent: %+v", all)
	}
	q.addUpdates(updates(change(3, 4)))
	q.putReply(answerAt(2, 9)) // of another term: it may be about another history
	if all := q.drain(); len(all) != 2 {
		t.Errorf("sent: %+v", all)
	}
	q.returnReply(answerAt(1, 5))
	q.returnReply(answerAt(1, 4)) // there is a newer one
	if all := q.drain(); len(all) != 1 || all[0].answer.LSN != 5 {
		t.Errorf("sent: %+v", all)
	}
}

// One goroutine at a time sends. The handler is needed for what others leave.
func TestAcquire(t *testing.T) {
	var q queue
	if !q.acquireForWave(nil) || q.acquireForWave(nil) || q.acquire() {
		t.Error("want one sender, and no other")
	}
	q.addUpdates(updates(change(1, 2)))
	if q.needsHandler() {
		t.Error("the handler is woken while another goroutine is sending")
	}
	if q.release(nil, false); !q.needsHandler() {
		t.Error("the handler is not woken for a message that was added meanwhile")
	}
	if q.acquireForWave(nil) {
		t.Error("a wave overtakes queued messages")
	}
	q.acquire()
	if _, ok := q.take(); !ok || q.acquireForWave(nil) {
		t.Error("want the handler to send the update, and a wave not to meanwhile")
	}
	if _, ok := q.take(); ok || !q.acquireForWave(nil) {
		t.Error("when all was sent there is more, or a wave cannot send")
	}
	if q.release(nil, false); q.needsHandler() {
		t.Error("the handler is woken for nothing")
	}
	if q.state = closed; q.acquireForWave(nil) || q.acquire() {
		t.Error("a closed stream is sent on")
	}
}

// Updates that a wave cannot send are sent later, in order. A slow lookup gets its updates from
// its handler for some waves.
func TestUnsentKeepsOrder(t *testing.T) {
	var q queue
	if !q.acquireForWave(updates(change(0, 1))) || q.acquireForWave(updates(change(1, 2))) {
		t.Fatal("want one sender, and no other")
	}
	q.release(updates(change(0, 1)), true)
	all := q.drain()
	if len(all) != 2 || all[0].update.reply.LSN != 1 || all[1].update.reply.LSN != 2 {
		t.Errorf("sent: %+v", all)
	}
	for i := range slowWaves {
		if q.acquireForWave(updates(change(i, i+1))) || len(q.drain()) != 1 {
			t.Fatalf("wave %d sends to a slow lookup", i)
		}
	}
	if !q.acquireForWave(nil) {
		t.Error("a lookup stays slow for ever")
	}
}

// FuzzQueue checks the guarantees of a queue for any order of events: changes, waves that send all
// or part of an update or fail, answers, and the handler that sends one message at a time.
//
// Updates reach the lookup in order. When the queue is empty, the lookup has received a message
// with the newest LSN, which shows it a gap if there was one. One goroutine at a time sends, the
// handler is awake while messages wait that no goroutine sends, and the queue is bounded.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 4, 5})
	f.Add([]byte{1, 0, 2, 4, 3, 0, 5, 5, 5})
	f.Add(slices.Repeat([]byte{0}, 100))
	f.Add(append(append([]byte{1}, slices.Repeat([]byte{0}, 40)...), 3, 5, 5))
	f.Fuzz(func(t *testing.T, events []byte) {
		m := queueModel{t: t}
		for _, e := range events {
			m.step(e)
			m.check()
		}
		m.finish()
	})
}

// A queueModel is a queue with its senders and the lookup at the other end.
type queueModel struct {
	t       *testing.T
	q       queue
	woken   bool      // the handler has a token
	handler bool      // the handler has acquired the queue
	wave    []message // what a wave has acquired the queue for
	listens bool      // the listener has acquired it
	lsn     int       // the newest change
	updated int       // the LSN of the last update that the lookup has received
	seen    int       // the newest LSN of all messages that it has received
}

func (m *queueModel) step(event byte) {
	switch event % 8 {
	case 0: // a change for all, added directly
		m.lsn++
		m.q.addUpdates(updates(change(m.lsn-1, m.lsn)))
	case 1: // a change in a wave
		m.lsn++
		news := updates(change(m.lsn-1, m.lsn))
		if m.q.acquireForWave(news) {
			m.wave = news
		}
	case 2: // the wave sends
		if m.wave != nil {
			m.receive(m.wave[0])
			m.q.release(nil, event >= 128)
			m.wave = nil
		}
	case 3: // the wave fails
		if m.wave != nil {
			m.q.release(m.wave, event >= 128)
			m.wave = nil
		}
	case 4: // an answer
		m.q.putReply(answerAt(1, m.lsn))
	case 5: // the handler
		m.handle()
	case 6: // the listener begins
		m.listens = m.listens || m.q.acquire()
	case 7: // the listener sends
		m.respond(event >= 128)
	}
	m.woken = m.woken || m.q.needsHandler()
}

// handle acquires the queue, or sends the next message.
func (m *queueModel) handle() {
	if !m.handler {
		m.handler = m.woken && m.q.acquire()
		m.woken = false
		return
	}
	next, ok := m.q.take()
	if m.handler = ok; ok {
		m.receive(next)
	}
}

// respond sends the reply, or returns it as bulk.
func (m *queueModel) respond(bulk bool) {
	if !m.listens {
		return
	}
	m.listens = false
	if reply, ok := m.q.takeReply(); ok && bulk {
		m.q.returnReply(reply)
	} else if ok {
		m.receive(reply)
	}
	m.q.release(nil, false)
}

func (m *queueModel) receive(got message) {
	r := got.update.reply
	m.seen = max(m.seen, int(r.LSN))
	if got.answer != nil {
		return
	}
	if int(r.LSN) <= m.updated {
		m.t.Fatalf("update %d comes after %d", r.LSN, m.updated)
	}
	m.updated = int(r.LSN)
}

func (m *queueModel) check() {
	holders := 0
	for _, holds := range []bool{m.handler, m.wave != nil, m.listens} {
		if holds {
			holders++
		}
	}
	switch {
	case holders > 1:
		m.t.Fatalf("%d goroutines are sending", holders)
	case (holders == 1) != (m.q.state == sending):
		m.t.Fatalf("%d goroutines are sending, and the state is %d", holders, m.q.state)
	case len(m.q.updates) > maxQueuedUpdates:
		m.t.Fatalf("%d updates are queued", len(m.q.updates))
	case m.q.pending() && holders == 0 && !m.woken:
		m.t.Fatal("messages wait, and the handler sleeps")
	}
}

// finish has all senders finish, and compares the lookup with the table.
func (m *queueModel) finish() {
	m.step(2)
	m.step(7)
	for m.woken || m.handler {
		m.step(5)
		m.check()
	}
	if m.seen != m.lsn {
		m.t.Fatalf("the lookup has seen change %d of %d, and has no gap to detect that", m.seen, m.lsn)
	}
}
