package wire

import (
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// Version is the protocol version of this package.
const Version = 2

// CheckClient returns an error unless a manager of this version supports the protocol version of a client:
// Version, or one less or more. 0 means that the message has no version. The text names both sides, because
// both display it.
func CheckClient(version uint32) error { return check(version, "client", "manager") }

// CheckManager is CheckClient for a client that receives a message of a manager.
func CheckManager(version uint32) error { return check(version, "manager", "client") }

// CheckVersion is CheckClient for two processes of the same role.
func CheckVersion(version uint32) error { return check(version, "sender", "receiver") }

func check(version uint32, sender, receiver string) error {
	const op = "protocol version"
	subject := strconv.FormatUint(uint64(version), 10)
	old := receiver
	switch {
	case version == 0:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "the first message of a stream and every request must have one; this %s has %d", receiver, Version)
	case int64(version) > Version+1:
	case int64(version) < Version-1:
		old = sender
	default:
		return nil
	}
	return leasehold.Errorf(op, leasehold.ErrStale, subject, "the %s has version %d and the %s %d, and they may differ by 1: upgrade the %s",
		sender, version, receiver, Version, old)
}
