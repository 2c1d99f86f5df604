package manager

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// acks are the sequence numbers of one session in this term. After the leader's first message to the session, it
// accepts only requests that acknowledge its newest message. lastAck <= sent.
type acks struct {
	// echo is the newest accepted request of this term; 0 if there is none.
	echo protocol.Seq
	// sent is the leader's newest message to the session in this term; 0 if there is none.
	sent protocol.Seq
	// lastSeq is the newest request, accepted or not, and lastAck the newest message that it acknowledges.
	lastSeq, lastAck protocol.Seq
	// proven: the session has acknowledged a message of this leader or an earlier one.
	proven bool
	// unacked: the newest message to the session requires an acknowledgement that has not arrived.
	unacked bool
	// stale: the newest message to the session is out of date. The peer is in Machine.touched.
	stale bool
	// resendAt is the time of the resend after a race.
	resendAt mono.Instant
}
