package wire

import (
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// Version is the protocol version of this package.
const Version = 2

// CheckVersion returns an error unless the protocol version of a peer is supported: Version, or one less or
// more. 0 means that the message has no version.
func CheckVersion(peer uint32) error {
	const op = "protocol version"
	subject := strconv.FormatUint(uint64(peer), 10)
	switch {
	case peer == 0:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "the first message of a stream and every request must have one; this side supports %d", Version)
	case int64(peer) > Version+1:
		return leasehold.Errorf(op, leasehold.ErrStale, subject, "this side supports %d: upgrade this side", Version)
	case int64(peer) < Version-1:
		return leasehold.Errorf(op, leasehold.ErrStale, subject, "this side supports %d: upgrade the peer", Version)
	}
	return nil
}
