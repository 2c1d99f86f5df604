package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A renewal is the exchange of requests and answers. Only the answer to our newest request counts: seq
// was sent at sentAt, and leases count from there.
type renewal struct {
	seq      protocol.Seq // our newest message
	sentAt   mono.Instant // when we sent it
	nextSend mono.Instant
	awaiting bool // our newest message has not been answered
	claimed  bool // our newest message claims suspended leases
	misses   int  // how many in a row were not answered
	// eager: there is something to send as soon as our newest message is answered.
	// To send before that would make the answer cross it.
	eager bool
	rtt   time.Duration // how long answers take, smoothed; 0 if unknown
}

// speak sends at once, or as soon as our newest message is answered.
func (r *renewal) speak(now mono.Instant) {
	if r.awaiting {
		r.eager = true
		return
	}
	r.nextSend = now
}

// measure learns how long answers take.
func (r *renewal) measure(now mono.Instant) {
	took := now.Sub(r.sentAt)
	if r.rtt == 0 {
		r.rtt = took
	}
	r.rtt += (took - r.rtt) / 8
}
