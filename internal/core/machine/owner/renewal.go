package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// renewal is the exchange of requests and replies. Only the reply to the newest request is accepted, and the
// duration of its leases counts from sentAt.
type renewal struct {
	seq             protocol.Seq // of the newest request
	sentAt          mono.Instant // when the newest request was sent
	nextSend        mono.Instant
	awaiting        bool           // the newest request has no reply yet
	claimsSuspended bool           // the newest request claims suspended leases
	acks            leasehold.Term // the term whose leader the newest request acknowledges; 0 if none
	misses          int            // requests in a row without a reply
	// sendOnReply: the next request is due as soon as the newest one has a reply. An earlier request
	// would cross that reply.
	sendOnReply bool
	rtt         time.Duration // smoothed round-trip time; 0 if unknown
}

// sendSoon schedules a request for now or, if one is outstanding, for the time of its reply.
func (r *renewal) sendSoon(now mono.Instant) {
	if r.awaiting {
		r.sendOnReply = true
		return
	}
	r.nextSend = now
}

// measure updates the round-trip time.
func (r *renewal) measure(now mono.Instant) {
	took := now.Sub(r.sentAt)
	if r.rtt == 0 {
		r.rtt = took
	}
	r.rtt += (took - r.rtt) / 8
}
