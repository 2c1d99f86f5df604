package manager

import "sync"

// An outbox holds the newest message for an owner that has not left. An older one is
// replaced: each is complete in itself, and the owner would drop it.
//
// One at a time sends. It may attend before there is anything to send, and nobody else is
// woken for what comes then.
type outbox struct {
	ready chan struct{} // has one if there is a message, and nobody attends

	mu       sync.Mutex
	newest   holdMessage // nil if there is none
	attended bool
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// put leaves a message, in place of one that has not left.
func (b *outbox) put(message holdMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest = message
	b.wake()
}

// announce leaves word of who leads, unless there is something else to say than who does not.
func (b *outbox) announce(n notLeader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, redirected := b.newest.(notLeader); b.newest == nil || redirected {
		b.newest = n
		b.wake()
	}
}

func (b *outbox) wake() {
	if b.attended {
		return
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// attend makes the caller the one who sends, and reports false if somebody else does.
func (b *outbox) attend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attended {
		return false
	}
	b.attended = true
	return true
}

// leave attends no longer, and has sent nothing.
func (b *outbox) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attended = false; b.newest != nil {
		b.wake()
	}
}

// sendAll sends what there is, and attends no longer. If that fails, the stream is of no
// use, and nobody is to send any more.
func (b *outbox) sendAll(send func(holdMessage) error) error {
	for {
		message := b.take()
		if message == nil {
			return nil
		}
		if err := send(message); err != nil {
			return err
		}
	}
}

// take takes what is to be sent next. If there is nothing, the caller attends no longer.
func (b *outbox) take() holdMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	message := b.newest
	b.newest, b.attended = nil, message != nil
	return message
}
