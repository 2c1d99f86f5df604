package namespacecmd

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/console"
)

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show how a namespace is configured and how it fares",
		Example: "  leasehold namespace show presence",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error { return showNamespace(ctx, c, args[0]) })
	return cmd
}

// A NamespaceShown is what "namespace show --json" prints. Its status is left
// out if no leader could tell it.
type NamespaceShown struct {
	admin.Namespace
	Status *admin.NamespaceStatus `json:"status,omitempty"`
}

func showNamespace(ctx context.Context, c *cli.Client, name string) error {
	c.Namespace = name
	config, err := c.Admin.Namespace(ctx, name)
	if err != nil {
		return c.Explain(ctx, err)
	}
	status, err := c.Admin.Status(ctx)
	if err != nil {
		return c.Explain(ctx, err)
	}
	shown := NamespaceShown{Namespace: config}
	if s, there := status.Namespace(name); there {
		shown.Status = &s
	}
	return c.Print(shown, shown.text)
}

// looksAtLoad reports whether the policy goes by what owners report.
func looksAtLoad(d admin.Namespace) bool {
	return d.Policy == partition.Balanced{}.Name() || d.Policy == partition.Adaptive{}.Name()
}

func (n NamespaceShown) text() string {
	lines := []console.Entry{{"namespace", console.Heading(console.Shown(n.Name))}}
	if s := n.Status; s != nil {
		lines = append(lines,
			console.Entry{"ready", cli.ReadyText(*s)},
			console.Entry{"owners", console.Grouped(uint64(s.Owners))},
			console.Entry{"ranges", cli.VacancyText(*s)},
			console.Entry{"lookups", fmt.Sprintf("%s at the manager asked", console.Grouped(uint64(s.Lookups)))},
			console.Entry{"lsn", console.Grouped(uint64(s.LSN))},
			console.Entry{"generation", cli.Decimal(uint64(s.NewestGeneration)) + " is the newest"})
	}
	lines = append(lines,
		console.Entry{"lease", fmt.Sprintf("%s, renewed every %s", cli.Seconds(n.Lease), cli.Seconds(n.Renew))},
		console.Entry{"drift", fmt.Sprintf("clocks may differ in rate by a factor of %.4g", n.Drift)},
		console.Entry{"policy", policyText(n.Namespace)})
	if looksAtLoad(n.Namespace) && n.Churn > 0 {
		lines = append(lines, console.Entry{"balance", fmt.Sprintf("at most %s of the keys move in a minute, looked at every %s", console.Percent(n.Churn), cli.Seconds(n.Rebalance))})
	}
	if n.Status != nil && n.Status.Lull != "" {
		lines = append(lines, console.Entry{"not now", n.Status.Lull})
	}
	if n.Moves > 0 {
		lines = append(lines, console.Entry{"moves", fmt.Sprintf("%d of an owner at a time, given up after %s without progress", n.Moves, cli.Seconds(n.MoveTimeout))})
	}
	lines = append(lines,
		console.Entry{"max owners", console.Grouped(uint64(n.MaxOwners))})
	text := console.Facts(lines)
	if len(n.Static) == 0 {
		return text
	}
	var rows [][]string
	for _, s := range n.Static {
		rows = append(rows, []string{s.Start.String(), cli.OrNobody(s.Owner)})
	}
	return text + "\n" + console.Table([]console.Column{console.Left("FROM KEY"), console.Left("OWNER")}, rows)
}
