package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const namespaceHelp = `A namespace is one pool of servers with one key space and one lease table.
Nothing done in one changes another. These commands list, create, change and
delete namespaces.`

func newNamespaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespace",
		Aliases: []string{"ns"},
		Short:   "List, create, change and delete namespaces",
		Long:    namespaceHelp,
		Args:    aSubcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNamespaceListCommand(), newNamespaceShowCommand(), newNamespaceCreateCommand(),
		newNamespaceUpdateCommand(), newNamespaceDeleteCommand())
	return cmd
}

func newNamespaceListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all namespaces and how they are configured",
		Args:  noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.listNamespaces(ctx) })
	return cmd
}

func (c *client) listNamespaces(ctx context.Context) error {
	all, err := c.admin.Namespaces(ctx)
	if err != nil {
		return c.explain(ctx, err)
	}
	document := struct {
		Namespaces []admin.Namespace `json:"namespaces"`
	}{all}
	return c.print(document, func() string { return namespacesText(all, c.security.tls()) })
}

func namespacesText(all []admin.Namespace, secured bool) string {
	if len(all) == 0 {
		return noNamespace(secured) + "\n"
	}
	var rows [][]string
	for _, n := range all {
		rows = append(rows, []string{
			console.Shown(n.Name), seconds(n.Lease), seconds(n.Renew), fmt.Sprintf("%.3g", n.Drift),
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
