package namespacecmd

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const namespaceHelp = `A namespace is one pool of servers with one key space and one lease table.
Nothing done in one changes another. These commands list, create, change and
delete namespaces.`

// New returns the command.
func New() *cobra.Command {
	cmd := cli.Group("namespace", "List, create, change and delete namespaces", namespaceHelp,
		newListCommand(), newShowCommand(), newCreateCommand(), newUpdateCommand(), newDeleteCommand())
	cmd.Aliases = []string{"ns"}
	return cmd
}

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all namespaces and how they are configured",
		Args:  cli.NoArguments,
	}
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return listNamespaces(ctx, c) })
	return cmd
}

func listNamespaces(ctx context.Context, c *cli.Client) error {
	all, err := c.Admin.Namespaces(ctx)
	if err != nil {
		return c.Explain(ctx, err)
	}
	document := struct {
		Namespaces []admin.Namespace `json:"namespaces"`
	}{all}
	return c.Print(document, func() string { return namespacesText(all, c.Security.Tls()) })
}

func namespacesText(all []admin.Namespace, secured bool) string {
	if len(all) == 0 {
		return cli.NoNamespace(secured) + "\n"
	}
	var rows [][]string
	for _, n := range all {
		rows = append(rows, []string{
			console.Shown(n.Name), cli.Seconds(n.Lease), cli.Seconds(n.Renew), fmt.Sprintf("%.3g", n.Drift),
			policyText(n), console.Grouped(uint64(n.MaxOwners)),
		})
	}
	return console.Table([]console.Column{
		console.Left("NAMESPACE"), console.Number("LEASE"), console.Number("RENEW"), console.Number("DRIFT"), console.Left("POLICY"), console.Number("MAX OWNERS"),
	}, rows)
}

func policyText(d admin.Namespace) string {
	switch {
	case d.VirtualNodes > 0:
		return fmt.Sprintf("%s, %s", console.Shown(d.Policy), console.Counted(int(d.VirtualNodes), "virtual node"))
	case len(d.Static) > 0:
		return fmt.Sprintf("%s, %s", console.Shown(d.Policy), console.Counted(len(d.Static), "slot"))
	}
	return console.Shown(d.Policy)
}
