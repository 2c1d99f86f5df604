package broadcast

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

const (
	// pausePerWave is the pause after a wave, in units of the time that the wave took.
	pausePerWave = 1
	// After a quiet time pauses are left out until they come to pauseCredit, or to
	// pauseCreditWaves waves if that is longer: a few changes in a row go at once.
	pauseCredit      = 500 * time.Millisecond
	pauseCreditWaves = 4
	// maxBatchChanges bounds the changes of one message, far below what a lookup accepts.
	maxBatchChanges = 4096
)

// A batch has the changes of a namespace that wait for the next wave.
type batch struct {
	active  bool                    // waves are being sent, or the pause after one lasts
	replies []*protocol.LookupReply // oldest first; the batch may append to each
	paused  time.Time               // when the pauses of all waves so far will be over
}

// add appends a reply, merged with the one before it if that is possible. If there are too
// many, those before are dropped, as in a queue.
func (b *batch) add(reply *protocol.LookupReply) {
	if n := len(b.replies); n > 0 && continues(b.replies[n-1], reply) {
		last := b.replies[n-1]
		last.Changes, last.LSN, last.Age = append(last.Changes, reply.Changes...), reply.LSN, reply.Age
		return
	}
	if len(b.replies) >= maxQueuedUpdates {
		b.replies = nil
	}
	own := *reply
	own.Changes = slices.Clone(reply.Changes)
	b.replies = append(b.replies, &own)
}

// continues reports whether one message can have the changes of both replies.
func continues(first, second *protocol.LookupReply) bool {
	return sameSource(first, second) && first.Snapshot == nil && second.Snapshot == nil &&
		len(first.Changes) > 0 && len(second.Changes) > 0 && second.From == first.LSN &&
		len(first.Changes)+len(second.Changes) <= maxBatchChanges
}

// take removes all replies. If there are none, no wave follows.
func (b *batch) take() []*protocol.LookupReply {
	replies := b.replies
	b.replies, b.active = nil, len(replies) > 0
	return replies
}

// pause returns the time to wait after a wave, if it is more than 0.
func (b *batch) pause(begun, ended time.Time) time.Duration {
	if b.paused.Before(begun) {
		b.paused = begun
	}
	took := ended.Sub(begun)
	b.paused = b.paused.Add((1 + pausePerWave) * took)
	return b.paused.Sub(ended) - max(pauseCredit, pauseCreditWaves*took)
}
