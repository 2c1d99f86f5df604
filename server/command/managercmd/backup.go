package managercmd

import (
	"context"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/console"
)

const backupHelp = `Prints what a group of managers that has lost all of its disks needs to begin
again: how every namespace is configured, and the newest generation that was
granted in it. Keep it in a file, somewhere else; "leasehold manager restore" reads it.

Leases are not part of it. They last for seconds, and a table of yesterday's
would only be wrong.`

const backupExample = `  leasehold manager backup > leasehold.backup.json`

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Print what managers that have lost everything begin again with",
		Long:    backupHelp,
		Example: backupExample,
		Args:    cli.NoArguments,
	}
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		saved, err := c.Admin.Backup(ctx)
		if err != nil {
			return c.Explain(ctx, err)
		}
		return cli.Write(c.Out, console.JSON(saved))
	})
	return cmd
}
