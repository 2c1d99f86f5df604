// Package namespacecmd is the subcommand "namespace".
package namespacecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const namespaceHelp = `A namespace is a pool of servers with one key space and one lease table.
Namespaces are independent of each other. These commands list, create, change and
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
		Short: "List all namespaces and their configuration",
		Args:  cli.NoArguments,
	}
	c := cli.NewClient(cmd)
	type document struct {
		Namespaces []admin.Namespace `json:"namespaces"`
	}
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		return cli.Answer(ctx, c, func(ctx context.Context, _ string) (document, error) {
			all, err := c.Admin.Namespaces(ctx)
			return document{all}, err
		}, func(d document) string { return namespacesText(d.Namespaces, c.Security.Tls()) })
	})
	return cmd
}

func namespacesText(all []admin.Namespace, secured bool) string {
	if len(all) == 0 {
		return cli.NoNamespace(secured) + "\n"
	}
	return console.Table([]console.Column{
		console.Left("NAMESPACE"), console.Number("LEASE"), console.Number("RENEW"), console.Number("DRIFT"), console.Left("POLICY"), console.Number("MAX OWNERS"),
	}, console.Rows(all, func(n admin.Namespace) []string {
		return []string{
			console.Shown(n.Name), cli.Seconds(n.Lease), cli.Seconds(n.Renew), fmt.Sprintf("%.3g", n.Drift),
			policyText(n), console.Grouped(uint64(n.MaxOwners)),
		}
	}))
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

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the configuration and the status of a namespace",
		Example: "  leasehold namespace show presence",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace()
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		c.Namespace = args[0]
		return cli.Answer(ctx, c, func(ctx context.Context, name string) (NamespaceShown, error) {
			return showNamespace(ctx, c, name)
		}, NamespaceShown.text)
	})
	return cmd
}

// A NamespaceShown is the output of "namespace show --json". Status is missing if no leader
// responds.
type NamespaceShown struct {
	admin.Namespace
	Status *admin.NamespaceStatus `json:"status,omitempty"`
}

func showNamespace(ctx context.Context, c *cli.Client, name string) (shown NamespaceShown, err error) {
	if shown.Namespace, err = c.Admin.Namespace(ctx, name); err != nil {
		return shown, err
	}
	status, err := c.Admin.Status(ctx)
	if s, there := status.Namespace(name); there {
		shown.Status = &s
	}
	return shown, err
}

func usesLoads(d admin.Namespace) bool {
	return d.Policy == partition.Balanced{}.Name() || d.Policy == partition.Adaptive{}.Name()
}

func (n NamespaceShown) text() string {
	lines := []console.Entry{{"namespace", console.Heading(console.Shown(n.Name))}}
	var s admin.NamespaceStatus
	if n.Status != nil {
		s = *n.Status
		lines = append(lines,
			console.Entry{"ready", cli.ReadyText(s)},
			console.Entry{"owners", console.Grouped(uint64(s.Owners))},
			console.Entry{"ranges", cli.VacancyText(s)},
			console.Entry{"lookups", fmt.Sprintf("%s at this manager", console.Grouped(uint64(s.Lookups)))},
			console.Entry{"lsn", console.Grouped(uint64(s.LSN))},
			console.Entry{"generation", cli.Decimal(uint64(s.NewestGeneration)) + " is the newest"})
	}
	text := console.Facts(append(lines,
		console.Entry{"lease", fmt.Sprintf("%s, renewed every %s", cli.Seconds(n.Lease), cli.Seconds(n.Renew))},
		console.Entry{"drift", fmt.Sprintf("clock rates may differ by a factor of %.4g", n.Drift)},
		console.Entry{"policy", policyText(n.Namespace)},
		console.If(usesLoads(n.Namespace) && n.Churn > 0, "balance", fmt.Sprintf("at most %s of the keys move per minute, evaluated every %s", console.Percent(n.Churn), cli.Seconds(n.Rebalance))),
		console.If(usesLoads(n.Namespace) && n.MinLoad > 0, "load", fmt.Sprintf("in %s, balanced from %g per second and owner on", console.Shown(n.LoadUnit), n.MinLoad)),
		console.If(s.Lull != "", "not now", s.Lull),
		console.If(n.Moves > 0, "moves", fmt.Sprintf("at most %d per owner at a time, timeout %s without progress", n.Moves, cli.Seconds(n.MoveTimeout))),
		console.Entry{"max owners", console.Grouped(uint64(n.MaxOwners))}))
	if len(n.Static) == 0 {
		return text
	}
	return text + "\n" + console.Table([]console.Column{console.Left("FROM KEY"), console.Left("OWNER")},
		console.Rows(n.Static, func(s admin.Slot) []string { return []string{s.Start.String(), cli.OrNone(s.Owner)} }))
}

const createHelp = `Creates a namespace. Defaults: leases of 10 s, renewed at a quarter of that, a drift
bound of 1.20, the policy balanced, which moves at most 9 % of the keys per minute, and
at most 4,096 owners.

A shorter lease reduces the unavailability of keys after a host is lost, and increases
the number of messages; a crash of a server under "leasehold run" takes milliseconds with
any lease. A longer lease tolerates longer outages of managers and networks. The command
warns about leases that end before a failover of the managers does. The drift bound is the
maximum ratio of the rates of two clocks; a bound below the actual ratio is unsafe.

The policy assigns keys to owners: "leasehold-lab policy list" describes the policies.
Balancing moves at most --churn of the keys per minute; keys of failed owners do not
count.

If a namespace of this name existed before, its generations continue, so that fencing
tokens of the deleted namespace stay invalid.`

const createExample = `  leasehold namespace create presence
  leasehold namespace create presence --lease 5s --churn 0.02
  leasehold namespace create presence --policy consistent --virtual-nodes 128
  leasehold namespace create presence --preset steady    # with servers under "leasehold run"`

func newCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a namespace",
		Long:    createHelp,
		Example: createExample,
		Args:    cli.OneArgument("a name for the namespace"),
	}
	o := addNamespaceFlags(cmd)
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		wanted := admin.Namespace{Name: args[0]}
		if err := leasehold.Namespace(args[0]).Validate(); err != nil {
			return err
		}
		if err := o.apply(&wanted); err != nil {
			return err
		}
		return edited(ctx, c, "created", func() (admin.Namespace, error) { return c.Admin.CreateNamespace(ctx, wanted) })
	})
	return cmd
}

const updateHelp = `Changes the configuration that flags set, and keeps the rest. Existing leases keep
their promised duration; a shorter lease takes full effect when the longer ones have
expired.

--lease without --renew sets the renewal interval to a quarter of the new lease.`

func newUpdateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update NAME",
		Short:   "Change the configuration of a namespace",
		Long:    updateHelp,
		Example: "  leasehold namespace update presence --lease 20s",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	o := addNamespaceFlags(cmd)
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace()
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if err := o.requireChange(); err != nil {
			return err
		}
		c.Namespace = args[0]
		return edited(ctx, c, "updated", func() (admin.Namespace, error) { return c.Admin.UpdateNamespace(ctx, args[0], o.apply) })
	})
	return cmd
}

func edited(ctx context.Context, c *cli.Client, did string, edit func() (admin.Namespace, error)) error {
	var now admin.Namespace
	err := cli.Answer(ctx, c, func(context.Context, string) (shown NamespaceShown, err error) {
		now, err = edit()
		return NamespaceShown{Namespace: now}, err
	}, func(n NamespaceShown) string {
		return fmt.Sprintf("%s %s\n\n%s", console.Good(did), console.Shown(n.Name), n.text())
	})
	if err != nil {
		return err
	}
	return warnOfLease(ctx, c, now)
}

// warnOfLease prints a warning if a failover can take longer than the leases last.
func warnOfLease(ctx context.Context, c *cli.Client, n admin.Namespace) error {
	status, err := c.Admin.Status(ctx)
	if err != nil {
		return nil // the change was made
	}
	if problem, advice := status.LeaseWarning(n); problem != "" {
		return cli.Write(c.Errs, fmt.Sprintf("%s %s\n%s\n", console.Bad("Warning:"), problem, advice))
	}
	return nil
}

const deleteHelp = `Deletes a namespace and its lease table. Its owners' leases expire, and lookups find no
owner. This cannot be undone: a new namespace of the same name is empty. Pass --yes to
confirm.`

func newDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete NAME --yes",
		Short:   "Delete a namespace, its leases and its configuration",
		Long:    deleteHelp,
		Example: "  leasehold namespace delete presence --yes",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm the deletion")
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace()
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if !yes {
			return cli.Fail(fmt.Errorf("this would permanently end all leases in %q; pass --yes to confirm", args[0]))
		}
		return cli.Answer(ctx, c, func(ctx context.Context, _ string) (map[string]string, error) {
			return map[string]string{"deleted": args[0]}, c.Admin.DeleteNamespace(ctx, args[0])
		}, func(map[string]string) string { return fmt.Sprintf("%s %s\n", console.Good("deleted"), args[0]) })
	})
	return cmd
}
