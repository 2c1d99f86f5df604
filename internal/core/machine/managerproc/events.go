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

// An Event is something that happens to a manager process.
type Event interface{ nodeEvent() }

type (
	// Request is a message from an owner.
	Request struct{ *protocol.LeaseRequest }
	// Lookup is a message from a lookup.
	Lookup struct{ *protocol.LookupRequest }
	// Election is something that happens to our candidacy.
	Election struct{ byrecord.Event }
	// Appointment is something that happens to the lease by which we may lead.
	Appointment struct{ bylease.Event }
	// Manager is something that happens to a namespace that we lead. It is
	// dropped if we lead in another term by now.
	Manager struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Event
	}
	// Followed is what a manager that we follow for our lookups says.
	Followed struct {
		Namespace leasehold.Namespace
		lookup.Event
	}
	// Catalogued answers [LoadCatalog], and says that the catalog has changed.
	// Catalog is nil if the store did not answer.
	Catalogued struct {
		Term    leasehold.Term
		Catalog *storage.Catalog
	}
	// Loaded answers [Load]. State is nil if the store did not answer.
	Loaded struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		State     *storage.State
	}
	// Slept says that our clock may have stood still while others ran on: the
	// computer was suspended.
	Slept struct{}
)

func (Request) nodeEvent()     {}
func (Lookup) nodeEvent()      {}
func (Election) nodeEvent()    {}
func (Appointment) nodeEvent() {}
func (Manager) nodeEvent()     {}
func (Followed) nodeEvent()    {}
func (Catalogued) nodeEvent()  {}
func (Loaded) nodeEvent()      {}
func (Slept) nodeEvent()       {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ nodeAction() }

type (
	// Elect is an action of the election.
	Elect struct{ byrecord.Action }
	// Manage is an action of a namespace; its answer must carry the term.
	Manage struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Action
	}
	// LoadCatalog reads the configuration of all namespaces, linearizably; the
	// shell answers with [Catalogued].
	LoadCatalog struct{ Term leasehold.Term }
	// Load reads all that is stored about a namespace, linearizably; the shell
	// answers with [Loaded].
	Load struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
	}
	// Settle says that the past of an entry of the catalog is over: no owner
	// believes any more in what an earlier configuration promised, or nobody
	// holds anything in a namespace that was deleted. The shell writes what
	// [storage.Catalog.Settled] says and lets us know with [Catalogued].
	Settle struct {
		Term  leasehold.Term
		Entry storage.Namespace
	}
	// Follow asks another manager, the leader, for what has changed; answers
	// come as [Followed].
	Follow struct {
		Namespace leasehold.Namespace
		To        storage.ManagerID
		Request   *protocol.LookupRequest
	}
	// Unfollow says that nobody asks for a namespace any more: what [Follow] has
	// opened for it can be closed.
	Unfollow struct{ Namespace leasehold.Namespace }
	// Serves says that from now on we answer the owners of a namespace. They need not
	// wait until they ask again.
	Serves struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
	}
	// RedirectOwner tells an owner that we do not lead.
	RedirectOwner struct {
		protocol.Speaker
		protocol.NotLeader
	}
	// RedirectLookup tells a lookup that we cannot answer it.
	RedirectLookup struct {
		Lookup uint64
		protocol.NotLeader
	}
	// RefuseOwner tells an owner that its namespace cannot be served, and why.
	RefuseOwner struct {
		protocol.Speaker
		Why error
	}
	// RefuseLookup tells a lookup that its namespace cannot be served, and why.
	RefuseLookup struct {
		Lookup uint64
		Why    error
	}
	// Relay is news for all lookups of a namespace that are connected to us.
	Relay struct {
		Namespace leasehold.Namespace
		Reply     *protocol.LookupReply
	}
	// Answer is the answer to one lookup, from what we know of the leader's
	// table.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}
	// Parked says that a namespace cannot be led, and why. The others go on.
	Parked struct {
		Namespace leasehold.Namespace
		Why       error
	}
	// Note tells the operator, and the counters, what happened to the lookup
	// with which we follow a namespace.
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
func (RefuseOwner) nodeAction()    {}
func (RefuseLookup) nodeAction()   {}
func (Relay) nodeAction()          {}
func (Answer) nodeAction()         {}
func (Parked) nodeAction()         {}
func (Note) nodeAction()           {}
