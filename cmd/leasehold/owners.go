package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const ownersHelp = `Lists the owners of a namespace: the servers that hold its keys, that want to, or
that are waited for. The states are:

  member   it takes part
  greeted  it has spoken, but has not shown yet that it hears
  waiting  another session has its name: it gets nothing until that one is gone
  silent   it holds leases and has not spoken to this leader: it is waited for

An owner is shown as suspended if its leases have passed their deadline: it was not heard
for longer than a lease, and is kept because no other owner could have its keys, or has
the time of a lease to return after an outage. If its process lives, it keeps its state
and serves nothing until the leader has answered it.

A member that is draining gets no keys, because an operator wants it so; one that
is leaving wants it so itself, and ends when its keys have moved.

Load is the work per second that the owner last reported. Moves are under way to
it (in) and from it (out), if it can move state at all; whether it can, a leader
that is older than this command does not know. Patience is for how long it may still be silent before its keys
go to others.`

func newOwnersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "owners",
		Short:   "List the servers of a namespace and their shares",
		Long:    ownersHelp,
		Example: "  leasehold owners -n presence",
		Args:    noArguments,
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.owners(ctx) })
	return cmd
}

func (c *client) owners(ctx context.Context) error {
	var answer *leaseholdv1.ListOwnersResponse
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		answer, err = to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: c.namespace})
		return err
	}); err != nil {
		return err
	}
	document := ownersDocument{Namespace: c.namespace, LSN: answer.GetLsn(), Owners: []ownerDocument{}}
	for _, o := range answer.GetOwners() {
		document.Owners = append(document.Owners, ownerJSON(o, answer.GetVersion() >= movesSince))
	}
	slices.SortStableFunc(document.Owners, func(a, b ownerDocument) int { return strings.Compare(a.Owner, b.Owner) })
	return c.print(document, document.text)
}

// An ownersDocument is what "owners --json" prints.
type ownersDocument struct {
	Namespace string          `json:"namespace"`
	LSN       uint64          `json:"lsn"`
	Owners    []ownerDocument `json:"owners"`
}

type ownerDocument struct {
	Owner    string  `json:"owner"`
	Session  string  `json:"session"`
	Addr     string  `json:"addr"`
	Weight   float64 `json:"weight"`
	State    string  `json:"state"`
	Leases   uint32  `json:"leases"`
	Share    float64 `json:"share"` // of the key space, 0 to 1
	Load     float64 `json:"load"`  // work per second, as the owner counts it
	Patience float64 `json:"patienceSeconds"`

	Draining   bool   `json:"draining"`             // an operator wants it to hold nothing
	Leaving    bool   `json:"leaving"`              // it wants to leave, when its keys have moved
	Suspended  bool   `json:"suspended"`            // its leases have passed their deadline, and are kept
	MovesState *bool  `json:"movesState,omitempty"` // it can move state; left out if the leader is too old to know
	MovesIn    uint32 `json:"movesIn"`              // under way
	MovesOut   uint32 `json:"movesOut"`
}

// movesSince is the first version of the protocol in which there are moves. Owner
// lists of managers before that have no version.
const movesSince = 2

func ownerJSON(o *leaseholdv1.OwnerStatus, knowsMoves bool) ownerDocument {
	h := o.GetHolder()
	d := ownerDocument{
		Owner: h.GetOwner(), Session: hex.EncodeToString(h.GetSession()), Addr: h.GetAddr(), Weight: h.GetWeight(),
		State: enumText(o.GetState(), "OWNER_STATE_"), Leases: o.GetLeases(), Share: o.GetShare(), Load: o.GetLoad(),
		Patience: time.Duration(o.GetPatience()).Seconds(),
		Draining: o.GetDraining(), Leaving: o.GetParting(), Suspended: o.GetSuspended(),
		MovesIn: o.GetMovesIn(), MovesOut: o.GetMovesOut(),
	}
	if knowsMoves {
		d.MovesState = new(o.GetMovesState())
	}
	return d
}

func (d ownersDocument) text() string {
	if len(d.Owners) == 0 {
		return "Nobody has joined " + shown(d.Namespace) + " yet: all its keys are vacant.\n"
	}
	var rows [][]string
	for _, o := range d.Owners {
		rows = append(rows, []string{
			shown(o.Owner), orDash(o.Addr), o.stateText(), fmt.Sprintf("%g", o.Weight), grouped(uint64(o.Leases)), percent(o.Share), load(o.Load),
			o.movesText(), seconds(o.Patience), shortSession(o.Session),
		})
	}
	return tableText([]column{
		left("OWNER"), left("ADDRESS"), left("STATE"), number("WEIGHT"), number("LEASES"), number("SHARE"), number("LOAD"),
		left("MOVES"), number("PATIENCE"), left("SESSION"),
	}, rows)
}

func (o ownerDocument) stateText() string {
	switch {
	case o.Suspended:
		return bad("suspended")
	case o.State == "silent" || o.State == "waiting":
		return bad(o.State)
	case o.Leaving:
		return "leaving"
	case o.Draining:
		return "draining"
	case o.State == "member":
		return good(o.State)
	}
	return o.State
}

func (o ownerDocument) movesText() string {
	switch {
	case o.MovesState == nil:
		return "unknown" // to a leader that is older than moves
	case !*o.MovesState:
		return "cannot"
	case o.MovesIn == 0 && o.MovesOut == 0:
		return "-"
	}
	return fmt.Sprintf("%d in, %d out", o.MovesIn, o.MovesOut)
}

// load is what an owner counts per second; nothing if it does not.
func load(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return grouped(uint64(perSecond)) + "/s"
}

// shortSession is enough to tell sessions apart.
func shortSession(session string) string { return session[:min(8, len(session))] }

// enumText is a name of the protocol in words: what is after its prefix. A
// value of a newer peer is its number.
func enumText(value interface{ String() string }, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}
