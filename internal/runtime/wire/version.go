package wire

import (
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// Version is the version of the protocol that this package speaks.
const Version = 2

// CheckVersion reports whether we understand a peer that speaks the version
// peer: ours, the one before or the one after. A peer that names none is not
// one of ours.
func CheckVersion(peer uint32) error {
	const op = "protocol version"
	subject := strconv.FormatUint(uint64(peer), 10)
	switch {
	case peer == 0:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "the first message of a stream and every request must name one; we speak %d", Version)
	case int64(peer) > Version+1:
		return leasehold.Errorf(op, leasehold.ErrStale, subject, "we speak %d: upgrade this side", Version)
	case int64(peer) < Version-1:
		return leasehold.Errorf(op, leasehold.ErrStale, subject, "we speak %d: upgrade the peer", Version)
	}
	return nil
}
