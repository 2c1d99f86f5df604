package broadcast

import "slices"

const (
	// maxQueuedUpdates is how many updates wait for a lookup that reads slowly.
	maxQueuedUpdates = 32
	// slowWaves is for how many waves the handler of a slow lookup sends its updates.
	slowWaves = 64
)

// senderState is whether a goroutine has acquired a queue.
type senderState uint8

const (
	idle    senderState = iota // no goroutine sends
	sending                    // one goroutine has acquired the queue
	closed                     // none sends any more
)

// A queue holds the messages to one receiver that have not been sent, and decides which is next
// and which goroutine sends it. It has no lock, goroutine or stream: see receiver.
type queue struct {
	state   senderState
	reply   message
	updates []message // oldest first
	slow    int       // the number of waves for which the handler sends
}

// putReply replaces the reply, and removes the updates that the new one includes.
func (q *queue) putReply(m message) {
	q.reply = m
	if m.answer != nil {
		q.updates = slices.DeleteFunc(q.updates, func(u message) bool {
			return u.update.reply.Term == m.answer.Term && u.update.reply.LSN <= m.answer.LSN
		})
	}
}

// announce puts a redirect, unless a reply of another kind waits.
func (q *queue) announce(m message) {
	if q.reply.none() || q.reply.redirect {
		q.reply = m
	}
}

// addUpdates adds updates. If there are too many, those before are dropped.
func (q *queue) addUpdates(updates []message) {
	for _, u := range updates {
		if len(q.updates) >= maxQueuedUpdates {
			q.updates = q.updates[:0]
		}
		q.updates = append(q.updates, u)
	}
}

// pending reports whether messages wait.
func (q *queue) pending() bool { return !q.reply.none() || len(q.updates) > 0 }

// needsHandler reports whether messages wait, and no goroutine is about to send them.
func (q *queue) needsHandler() bool { return q.state == idle && q.pending() }

// acquire makes the caller the one that sends, and reports false if it must not.
func (q *queue) acquire() bool {
	if q.state != idle {
		return false
	}
	q.state = sending
	return true
}

// acquireForWave acquires a queue whose receiver is neither behind nor slow. Otherwise it adds
// the updates.
func (q *queue) acquireForWave(updates []message) bool {
	if q.slow == 0 && !q.pending() && q.acquire() {
		return true
	}
	q.slow = max(0, q.slow-1)
	q.addUpdates(updates)
	return false
}

// take removes the next message: the reply, or else the oldest update. If there is none, the
// queue is released.
func (q *queue) take() (m message, ok bool) {
	if m, ok = q.takeReply(); ok {
		return m, true
	}
	if len(q.updates) == 0 {
		q.updates = nil // most queues are empty most of the time
		q.release(nil, false)
		return message{}, false
	}
	m = q.updates[0]
	q.updates = slices.Delete(q.updates, 0, 1)
	return m, true
}

// takeReply removes the reply.
func (q *queue) takeReply() (m message, ok bool) {
	m, q.reply = q.reply, message{}
	return m, !m.none()
}

// returnReply puts a reply back that was not sent, unless there is a newer one.
func (q *queue) returnReply(m message) {
	if q.reply.none() {
		q.reply = m
	}
}

// release ends what acquire began. Unsent updates come before those that were added meanwhile,
// or are dropped if there is no room.
func (q *queue) release(unsent []message, slow bool) {
	if q.state == sending {
		q.state = idle
	}
	if slow {
		q.slow = slowWaves
	}
	if len(unsent) > 0 && len(unsent)+len(q.updates) <= maxQueuedUpdates {
		q.updates = slices.Concat(unsent, q.updates)
	}
}
