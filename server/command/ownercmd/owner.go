// Package ownercmd is the subcommand "owner".
package ownercmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const ownersHelp = `Lists the owners of a namespace: servers that hold keys, want to join, or are expected to
return. The states are:

  member   joined
  greeted  its hello was received, but no acknowledgement of the manager's reply yet
  waiting  another session has its name: it receives no keys until that session ends
  silent   it holds leases and has not contacted this leader yet

An owner is suspended if its leases have passed their deadline and are kept: no renewal
arrived for longer than a lease, and either no other owner can receive its keys, or it may
still return after an outage. If its process lives, it keeps its state and serves nothing
until the leader responds to it.

A draining member receives no keys on an operator's order; a leaving member drains itself,
and ends when its keys have moved.

Load is the work per second in the owner's last report. Moves counts the transfers to the
owner (in) and from it (out); "cannot" means that it cannot transfer state, "unknown" that
the leader is older than this command. If a supervised owner ("leasehold run") crashes, its
keys go to others at once. Patience is the time until the keys of a silent owner go to
others.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("owner", "List, show and drain the servers of a namespace", "Owners are the servers that hold the keys of a namespace, under leases.", newListCommand(), newShowCommand(), newDrainCommand())
}

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the servers of a namespace and their shares",
		Long:    ownersHelp,
		Example: "  leasehold owner list -n presence",
		Args:    cli.NoArguments,
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return cli.Answer(ctx, c, c.Admin.Owners, ownersTable) })
	return cmd
}

func ownersTable(d admin.Owners) string {
	if len(d.Owners) == 0 {
		return "No owner has joined " + console.Shown(d.Namespace) + " yet: all its keys are vacant.\n"
	}
	rows := console.Rows(d.Owners, func(o admin.Owner) []string {
		return []string{
			console.Shown(o.Owner), console.OrDash(o.Addr), cli.OwnerState(o), fmt.Sprintf("%g", o.Weight), console.Grouped(uint64(o.Leases)), console.Percent(o.Share), cli.Load(o.Load),
			cli.OwnerMoves(o), cli.Supervised(o), console.Brief(time.Duration(o.Patience)), cli.ShortSession(o.Session),
		}
	})
	return console.Table([]console.Column{
		console.Left("OWNER"), console.Left("ADDRESS"), console.Left("STATE"), console.Number("WEIGHT"), console.Number("LEASES"), console.Number("SHARE"), console.Number("LOAD"),
		console.Left("MOVES"), console.Left("SUPERVISED"), console.Number("PATIENCE"), console.Left("SESSION"),
	}, rows)
}

const showHelp = `Shows one owner: its session, and its ranges. If several processes have the same name,
each session is shown; one of them holds the ranges, and the others wait.`

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show OWNER",
		Short:   "Show an owner and its ranges",
		Long:    showHelp,
		Example: "  leasehold owner show server-1 -n presence",
		Args:    cli.OneArgument("the name of an owner"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.ValidArgsFunction = c.CompleteOwner()
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (shown, error) {
			return show(ctx, c, namespace, args[0])
		}, shownText)
	})
	return cmd
}

// shown is the output of "owner show --json".
type shown struct {
	Sessions []admin.Owner `json:"sessions"`
	admin.Ranges
}

func show(ctx context.Context, c *cli.Client, namespace, owner string) (shown, error) {
	all, err := c.Admin.Owners(ctx, namespace)
	if err != nil {
		return shown{}, err
	}
	sessions := slices.DeleteFunc(all.Owners, func(o admin.Owner) bool { return o.Owner != owner })
	if len(sessions) == 0 {
		return shown{}, leasehold.Errorf("show owner", leasehold.ErrNotFound, owner, "no owner in %s has this name; 'leasehold owner list -n %s' lists the owners", namespace, namespace)
	}
	held, err := c.Admin.Ranges(ctx, namespace, owner)
	return shown{sessions, held}, err
}

func shownText(s shown) string {
	var out strings.Builder
	for _, o := range s.Sessions {
		out.WriteString(console.Facts([]console.Entry{
			{"owner", console.Shown(o.Owner)},
			{"address", console.OrDash(o.Addr)},
			{"state", cli.OwnerState(o)},
			{"session", o.Session},
			{"weight", fmt.Sprintf("%g", o.Weight)},
			{"leases", fmt.Sprintf("%s, %s of the keys", console.Grouped(uint64(o.Leases)), console.Percent(o.Share))},
			{"load", cli.Load(o.Load)},
			{"moves", cli.OwnerMoves(o)},
			{"supervised", cli.Supervised(o)},
			{"patience", console.Brief(time.Duration(o.Patience))},
		}) + "\n")
	}
	return out.String() + cli.RangesText(s.Ranges, "It holds no ranges.")
}
