package namespacecmd

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const createHelp = `Creates a namespace. What no flag says gets its default: leases of 10 s, renewed
every quarter of that, a drift bound of 1.20, the policy balanced, which moves at
most 9 % of the keys in a minute, and at most 4,096 owners.

A shorter lease means that the keys of a server that dies are unavailable for a
shorter time, and more messages. The drift bound is by how much the rates of two
clocks may differ; too low a bound is unsafe.

The policy decides who gets which keys: "leasehold-lab policy list" says what there is.
For the sake of balance it moves at most --churn of the keys in a minute; keys
whose owner has gone are not counted.

A namespace that existed before goes on with its generations where they ended,
so that tokens of its former life are never valid again.`

const createExample = `  leasehold namespace create presence
  leasehold namespace create presence --lease 5s --churn 0.02
  leasehold namespace create presence --policy consistent --virtual-nodes 128
  leasehold namespace create presence --preset paper    # 60 s leases, as in Centrifuge`

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
		now, err := c.Admin.CreateNamespace(ctx, wanted)
		return edited(ctx, c, "created", now, err)
	})
	return cmd
}

const updateHelp = `Changes what flags say, and leaves the rest as it is. Leases that are held keep
what they were promised; a shorter lease takes full effect when the longer ones
have run out.

If --lease is given without --renew, renewals come every quarter of the new
lease.`

func newUpdateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update NAME",
		Short:   "Change how a namespace is configured",
		Long:    updateHelp,
		Example: "  leasehold namespace update presence --lease 20s",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	o := addNamespaceFlags(cmd)
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if err := o.something(); err != nil {
			return err
		}
		c.Namespace = args[0]
		now, err := c.Admin.UpdateNamespace(ctx, args[0], o.apply)
		return edited(ctx, c, "updated", now, err)
	})
	return cmd
}

// edited shows what came of a change of a namespace.
func edited(ctx context.Context, c *cli.Client, did string, now admin.Namespace, err error) error {
	if err != nil {
		return c.Explain(ctx, err)
	}
	shows := NamespaceShown{Namespace: now}
	return c.Print(shows, func() string {
		return fmt.Sprintf("%s %s\n\n%s", console.Good(did), console.Shown(now.Name), shows.text())
	})
}

const deleteHelp = `Deletes a namespace and its lease table. Its owners' leases run out, and callers
no longer find anyone. There is no way back: a namespace that is created with
the same name is empty. Say --yes to show that you mean it.`

func newDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete NAME --yes",
		Short:   "Delete a namespace, its leases and its configuration",
		Long:    deleteHelp,
		Example: "  leasehold namespace delete presence --yes",
		Args:    cli.OneArgument("the name of a namespace"),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, really")
	c := cli.NewClient(cmd)
	cmd.ValidArgsFunction = c.CompleteNamespace
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if !yes {
			return cli.Fail(fmt.Errorf("this would end all leases in %q, for good; add --yes if you mean it", args[0]))
		}
		if err := c.Admin.DeleteNamespace(ctx, args[0]); err != nil {
			return c.Explain(ctx, err)
		}
		return c.Print(deletedDocument{Deleted: args[0]}, func() string { return fmt.Sprintf("%s %s\n", console.Good("deleted"), args[0]) })
	})
	return cmd
}

// A deletedDocument is what "namespace delete --json" prints.
type deletedDocument struct {
	Deleted string `json:"deleted"`
}
