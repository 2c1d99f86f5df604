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

const showHelp = `Shows one owner: its session, and the ranges that it holds. If several processes have
its name, each session is shown; one of them holds the ranges, and the others wait.`

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show OWNER",
		Short:   "Show an owner and its ranges",
		Long:    showHelp,
		Example: "  leasehold owner show server-1 -n presence",
		Args:    cli.OneArgument("the name of an owner"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.ValidArgsFunction = c.CompleteOwner
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error { return show(ctx, c, args[0]) })
	return cmd
}

// shown is what "owner show --json" prints.
type shown struct {
	Sessions []admin.Owner `json:"sessions"`
	admin.Ranges
}

func show(ctx context.Context, c *cli.Client, owner string) error {
	found, err := cli.Within(ctx, c, func(ctx context.Context, namespace string) (shown, error) {
		all, err := c.Admin.Owners(ctx, namespace)
		if err != nil {
			return shown{}, err
		}
		sessions := slices.DeleteFunc(all.Owners, func(o admin.Owner) bool { return o.Owner != owner })
		if len(sessions) == 0 {
			return shown{}, leasehold.Errorf("show owner", leasehold.ErrNotFound, owner, "no owner of %s has this name; see 'leasehold owner list -n %s'", namespace, namespace)
		}
		held, err := c.Admin.Ranges(ctx, namespace, owner)
		return shown{sessions, held}, err
	})
	if err != nil {
		return err
	}
	return c.Print(found, func() string { return shownText(found) })
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
			{"patience", console.Brief(time.Duration(o.Patience))},
		}) + "\n")
	}
	return out.String() + cli.RangesText(s.Ranges, "It holds nothing.")
}
