// Package broadcast sends what a manager's machine decides to the streams of owners, lookups and
// standbys: replies to one receiver, and table changes to all lookups of a namespace. A standby
// follows the leader as a lookup does, and broadcasts what it receives to its own lookups.
//
// # Queues
//
// Each stream has a [queue]. It holds at most one reply, the newest: a reply is complete in itself,
// and a receiver discards an older one. A lookup's queue also holds up to maxQueuedUpdates
// updates, oldest first. A reply removes the updates whose changes it includes. If the queue is
// full, all its updates are dropped; the next one starts at an LSN that the lookup does not have,
// and the lookup requests the missing changes.
//
// One goroutine at a time sends on a stream: the one that has acquired its queue. There are three
// kinds. The goroutine that received a request sends the small reply to it, if the machine was
// idle; this saves waking another. A wave sends updates. The handler of the stream sends the rest:
// it is woken whenever messages wait in a queue that no goroutine has acquired.
//
// Requests are conflated, too: only the newest request of a lookup is queued for the machine.
//
// # Waves
//
// A namespace with few lookups (Config.MaxDirect) adds each update to their queues. With more,
// updates go in waves. A change after a quiet time starts a wave at once. Changes that come during
// a wave, or in the pause after it, are merged into a [batch], which is the next wave. The pause is
// as long as the wave was, so broadcasts take at most half the time, for any number of lookups;
// after a quiet time some waves go without a pause.
//
// In a wave one goroutine sends to one lookup after the other, which is faster than waking
// thousands of handlers. It blocks on a lookup that does not read once gRPC's buffer is full. When
// a wave makes little progress and all its goroutines are blocked, another one continues with the
// next lookup: after 20 ms, then every 5 ms, up to 32. After that the rest of the wave goes to the
// queues. A lookup that took more than 5 ms, or whose queue is not empty, gets its updates from its
// own handler, the slow one for the next 64 waves.
//
// # Bulk
//
// Messages of 128 KiB and more, mostly snapshots, are sent by handlers only, and by 16 per
// processor at a time, so that thousands of lookups that need the table leave time for renewals.
// A slot is free again when the message has been sent, or after 25 ms. A newer reply that arrives
// while the handler waits for a slot is sent instead. Each message is encoded once for all
// lookups that get the same bytes ([answers]).
//
// # Guarantees
//
//   - Order: updates reach a lookup in LSN order. A reply may overtake updates that it includes;
//     a lookup ignores changes that it has.
//   - Gaps are detectable: dropped updates are always followed by a newer one or a reply.
//   - Progress: a queue with messages is acquired, or its handler is awake. After a failed send no
//     goroutine sends on that stream again, except that a wave leaves this to the handler.
//   - Memory: per owner one reply; per lookup one request, one reply and maxQueuedUpdates shared
//     updates; per namespace one batch with at most maxQueuedUpdates messages of at most
//     maxBatchChanges changes, one snapshot and maxAnswers encoded answers.
//   - A slow receiver costs others at most 40 ms in the first wave that meets it, 10 ms if others
//     are slow as well, and 25 ms of a bulk slot per snapshot. It does not delay the machine:
//     Broadcast, Answer, Send and the methods of Owners do not block on streams.
package broadcast
