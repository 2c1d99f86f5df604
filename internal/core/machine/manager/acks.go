package manager

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// acks are the sequence numbers of one session in this term. Once we have sent something, only a request that
// reflects our newest message is accepted. lastAck <= sent.
type acks struct {
	// echo is the newest request accepted, 0 if none was in this term.
	echo protocol.Seq
	// sent is our newest message to it, 0 if there was none in this term.
	sent protocol.Seq
	// lastSeq is its newest request, accepted or not, and lastAck the newest message of ours that this reflects.
	lastSeq, lastAck protocol.Seq
	// proven: it has shown that it receives our messages, to us or to a leader before us.
	proven bool
	// unacked: our newest message asks for something and was not reflected yet.
	unacked bool
	// stale: our newest message is no longer what we want. The peer is in Machine.touched.
	stale bool
	// resendAt is when to send again after a race.
	resendAt mono.Instant
}
