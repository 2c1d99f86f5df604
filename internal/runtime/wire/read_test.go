package wire_test

import (
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Decoding and validation of each message with the same signature, for tests of all messages.

func readLeaseRequest(m *leaseholdv1.HoldRequest) (*protocol.LeaseRequest, error) {
	return wire.ToLeaseRequest(m, limits)
}

func validateLeaseRequest(r *protocol.LeaseRequest) error { return r.Validate(limits) }

func readLeaseReply(m *leaseholdv1.HoldResponse) (*protocol.LeaseReply, error) {
	return wire.ToLeaseReply(m.GetGrant(), limits)
}

func validateLeaseReply(r *protocol.LeaseReply) error { return r.Validate(limits) }

func validateNotLeader(n protocol.NotLeader) error { return n.Validate() }

func readLookupRequest(m *leaseholdv1.FollowRequest) (*protocol.LookupRequest, error) {
	return wire.ToLookupRequest(m, 1)
}

func validateLookupRequest(r *protocol.LookupRequest) error { return r.Validate() }

func readLookupReply(m *leaseholdv1.FollowResponse) (*protocol.LookupReply, error) {
	return wire.ToLookupReply(m.GetUpdate(), limits)
}

func validateLookupReply(r *protocol.LookupReply) error { return r.Validate(limits) }

func validateNamespace(n storage.Namespace) error {
	return protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}.Validate()
}
