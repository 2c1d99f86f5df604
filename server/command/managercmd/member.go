package managercmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the managers whose stores form the group",
		Args:  cli.NoArguments,
	}
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		members, err := c.Admin.Members(ctx)
		if err != nil {
			return c.Explain(ctx, err)
		}
		document := struct {
			Members []admin.Member `json:"members"`
		}{members}
		return c.Print(document, func() string { return membersText(members) })
	})
	return cmd
}

func membersText(members []admin.Member) string {
	if len(members) == 0 {
		return "The tables are kept in a store of their own: there is no group of managers to list.\n"
	}
	var rows [][]string
	for _, m := range members {
		health, role := console.Good("yes"), "voter"
		if !m.Healthy {
			health = console.Bad("no")
		}
		if m.Learner {
			role = "learner"
		}
		rows = append(rows, []string{console.OrDash(m.Name), m.ID.String(), role, health, console.OrDash(strings.Join(m.PeerURLs, " "))})
	}
	return console.Table([]console.Column{console.Left("NAME"), console.Left("ID"), console.Left("ROLE"), console.Left("ANSWERS"), console.Left("PEER URL")}, rows)
}

const removeHelp = `Makes the group smaller by one manager, dead or alive. Its data is of no use any
more: it can come back only as a new member, with an empty data directory.`

func newRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a manager from the group",
		Long:    removeHelp,
		Example: "  leasehold manager remove manager-3",
		Args:    cli.OneArgument("the name of a member, or its id"),
	}
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if err := c.Admin.RemoveMember(ctx, args[0]); err != nil {
			return c.Explain(ctx, err)
		}
		return c.Print(removedDocument{Removed: args[0]}, func() string { return fmt.Sprintf("%s %s\n", console.Good("removed"), console.Shown(args[0])) })
	})
	return cmd
}

// A removedDocument is what "manager remove --json" prints.
type removedDocument struct {
	Removed string `json:"removed"`
}
