package protocol

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A DeathNotice is the proof that the process of a session has ended. Its sender has verified that no code of the
// process can run any more.
type DeathNotice struct {
	Namespace leasehold.Namespace
	Owner     leasehold.OwnerID
	Session   leasehold.Session
	Token     table.DeathToken
}

// Validate reports an invalid notice.
func (n *DeathNotice) Validate() error {
	if err := n.Namespace.Validate(); err != nil {
		return err
	}
	if err := n.Owner.Validate(); err != nil {
		return err
	}
	if n.Session.IsZero() || n.Token == (table.DeathToken{}) {
		return leasehold.Errorf("death notice", leasehold.ErrInvalid, string(n.Owner), "has no session or no token")
	}
	return nil
}

// A DeathOutcome is the leader's reply to a [DeathNotice].
type DeathOutcome uint8

// Outcomes of death notices. The wire protocol has the same numbers for those that it has.
const (
	DeathUndecided DeathOutcome = 0 // the leader cannot decide yet: repeat the notice
	DeathRecorded  DeathOutcome = 1 // the session has no leases, which is committed
	DeathUnknown   DeathOutcome = 2 // nothing to do: the leader does not have the session, or has no hash for it
	DeathRefused   DeathOutcome = 3 // the token or the owner does not match the session
)
