package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/console"
)

const backupHelp = `Prints what a group of managers that has lost all of its disks needs to begin
again: how every namespace is configured, and the newest generation that was
granted in it. Keep it in a file, somewhere else; "leasehold restore" reads it.

Leases are not part of it. They last for seconds, and a table of yesterday's
would only be wrong.`

const backupExample = `  leasehold backup > leasehold.backup.json`

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Print what managers that have lost everything begin again with",
		Long:    backupHelp,
		Example: backupExample,
		Args:    noArguments,
	}
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error {
		saved, err := c.admin.Backup(ctx)
		if err != nil {
			return c.explain(ctx, err)
		}
		return write(c.out, console.JSON(saved))
	})
	return cmd
}
