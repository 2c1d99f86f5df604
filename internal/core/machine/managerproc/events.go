package managerproc

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is an input of a manager process.
type Event interface{ nodeEvent() }

type (
	// Request is a message from an owner.
	Request struct{ *protocol.LeaseRequest }
	// Lookup is a message from a lookup.
	Lookup struct{ *protocol.LookupRequest }
	// Died is the proof that the process of a session has ended. The reply is [DeathReply], or
	// [RedirectDeath].
	Died struct {
		ID uint64 // chosen by the caller
		*protocol.DeathNotice
	}
	// Election is an event of the leader election.
	Election struct{ byrecord.Event }
	// Appointment is an event of the lease by which this manager may lead.
	Appointment struct{ bylease.Event }
	// Manager is an event of a namespace's machine. It is dropped unless Term is the current term.
	Manager struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Event
	}
	// Followed is an event of the connection to the leader that a relay follows.
	Followed struct {
		Namespace leasehold.Namespace
		lookup.Event
	}
	// Catalogued is the reply to [LoadCatalog], and is also sent after a change of the catalog.
	// Catalog is nil if the store did not answer.
	Catalogued struct {
		Term    leasehold.Term
		Catalog *storage.Catalog
	}
	// Loaded is the reply to [Load]. State is nil if the store did not answer.
	Loaded struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		State     *storage.State
	}
	// Slept reports that this clock may have stopped while others ran: the computer was suspended.
	Slept struct{}
)

func (Request) nodeEvent()     {}
func (Lookup) nodeEvent()      {}
func (Died) nodeEvent()        {}
func (Election) nodeEvent()    {}
func (Appointment) nodeEvent() {}
func (Manager) nodeEvent()     {}
func (Followed) nodeEvent()    {}
func (Catalogued) nodeEvent()  {}
func (Loaded) nodeEvent()      {}
func (Slept) nodeEvent()       {}

// An Action is executed by the shell, in order.
type Action interface{ nodeAction() }

type (
	// Elect is an action of the leader election.
	Elect struct{ byrecord.Action }
	// Manage is an action of a namespace's machine; its reply must have the term.
	Manage struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Action
	}
	// LoadCatalog reads the configuration of all namespaces, linearizably; the reply is
	// [Catalogued].
	LoadCatalog struct{ Term leasehold.Term }
	// Load reads the stored state of a namespace, linearizably; the reply is [Loaded].
	Load struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
	}
	// Settle reports that all leases of an entry's earlier configuration have ended, or all leases
	// of a deleted namespace. The shell writes the result of [storage.Catalog.Settled] and replies
	// with [Catalogued].
	Settle struct {
		Term  leasehold.Term
		Entry storage.Namespace
	}
	// Follow requests the changes of a namespace from the leader; replies arrive as [Followed].
	Follow struct {
		Namespace leasehold.Namespace
		To        storage.ManagerID
		Request   *protocol.LookupRequest
	}
	// Unfollow closes the connection that [Follow] has opened: no lookup requests the namespace any
	// more.
	Unfollow struct{ Namespace leasehold.Namespace }
	// Serves reports that this manager now answers the owners of a namespace. The shell announces it
	// to the connected owners, so that they need not wait for their next retry.
	Serves struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
	}
	// RedirectOwner replies to an owner that this manager does not lead.
	RedirectOwner struct {
		protocol.Speaker
		protocol.NotLeader
	}
	// RedirectLookup replies to a lookup that this manager cannot answer.
	RedirectLookup struct {
		Lookup uint64
		protocol.NotLeader
	}
	// DeathReply is the reply to [Died].
	DeathReply struct {
		ID      uint64
		Outcome protocol.DeathOutcome
	}
	// RedirectDeath is the reply to [Died] of a manager that does not lead.
	RedirectDeath struct {
		ID uint64
		protocol.NotLeader
	}
	// RefuseOwner rejects a request of an owner, with the reason.
	RefuseOwner struct {
		protocol.Speaker
		Why error
	}
	// RefuseLookup rejects a request of a lookup, with the reason.
	RefuseLookup struct {
		Lookup uint64
		Why    error
	}
	// Relay broadcasts a reply to all connected lookups of a namespace.
	Relay struct {
		Namespace leasehold.Namespace
		Reply     *protocol.LookupReply
	}
	// Answer is the reply to one lookup, from this standby's copy of the leader's table.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}
	// Parked reports that a namespace cannot be led, and why. The others are not affected.
	Parked struct {
		Namespace leasehold.Namespace
		Why       error
	}
	// Note is a log line and metric of a relay.
	Note struct {
		Namespace leasehold.Namespace
		lookup.Note
	}
)

func (Elect) nodeAction()          {}
func (Manage) nodeAction()         {}
func (LoadCatalog) nodeAction()    {}
func (Load) nodeAction()           {}
func (Settle) nodeAction()         {}
func (Follow) nodeAction()         {}
func (Unfollow) nodeAction()       {}
func (Serves) nodeAction()         {}
func (RedirectOwner) nodeAction()  {}
func (RedirectLookup) nodeAction() {}
func (DeathReply) nodeAction()     {}
func (RedirectDeath) nodeAction()  {}
func (RefuseOwner) nodeAction()    {}
func (RefuseLookup) nodeAction()   {}
func (Relay) nodeAction()          {}
func (Answer) nodeAction()         {}
func (Parked) nodeAction()         {}
func (Note) nodeAction()           {}
