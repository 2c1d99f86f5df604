package managercmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
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
		return cli.Answer(ctx, c, func(ctx context.Context, _ string) (map[string][]admin.Member, error) {
			members, err := c.Admin.Members(ctx)
			return map[string][]admin.Member{"members": members}, err
		}, func(d map[string][]admin.Member) string { return membersText(d["members"]) })
	})
	return cmd
}

func membersText(members []admin.Member) string {
	if len(members) == 0 {
		return "The tables are kept in a store of their own: there is no group of managers to list.\n"
	}
	rows := console.Rows(members, func(m admin.Member) []string {
		health, role := console.Good("yes"), "voter"
		if !m.Healthy {
			health = console.Bad("no")
		}
		if m.Learner {
			role = "learner"
		}
		return []string{console.OrDash(m.Name), m.ID.String(), role, health, console.OrDash(strings.Join(m.PeerURLs, " "))}
	})
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
		return cli.Answer(ctx, c, func(ctx context.Context, _ string) (map[string]string, error) {
			return map[string]string{"removed": args[0]}, c.Admin.RemoveMember(ctx, args[0])
		}, func(map[string]string) string {
			return fmt.Sprintf("%s %s\n", console.Good("removed"), console.Shown(args[0]))
		})
	})
	return cmd
}

const backupHelp = `Prints what a group of managers that has lost all of its disks needs to begin
again: how every namespace is configured, and the newest generation that was
granted in it. Keep it in a file, somewhere else; "leasehold manager restore" reads it.

Leases are not part of it. They last for seconds, and a table of yesterday's
would only be wrong.`

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Print what managers that have lost everything begin again with",
		Long:    backupHelp,
		Example: "  leasehold manager backup > leasehold.backup.json",
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

const restoreHelp = `Creates the namespaces of a backup in a new group of managers, for when the old
group is lost for good. Their generations begin far above those of the backup, so
that fencing tokens from before are not valid again, and databases need not forget
any.

No manager of the old group may run any more: owners that still renew with it would
have their keys beside those of the new group. What they were granted before runs out,
and for that restore waits first, as long as the longest lease lasts. Say
--owners-stopped if none of them runs.

Start owners and lookups again afterwards. Those that go on remember the old group's
term, and do not listen to the new leader until it has a term above that.

Restoring again is harmless: what is there already stays as it is.`

func newRestoreCommand() *cobra.Command {
	var stopped bool
	cmd := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Create the namespaces of a backup in a new group of managers",
		Long:    restoreHelp,
		Example: "  leasehold manager restore leasehold.backup.json",
		Args:    cli.OneArgument("the file that a backup is in, or - for standard input"),
	}
	cmd.Flags().BoolVar(&stopped, "owners-stopped", false, "do not wait for leases to run out: no owner runs")
	c := cli.NewClient(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		saved, err := readBackup(args[0], cmd.InOrStdin())
		if err != nil {
			return cli.Fail(fmt.Errorf("%s: %w", args[0], err))
		}
		wait := func(ctx context.Context, longest time.Duration) error { return waitOut(ctx, c, longest) }
		if stopped {
			wait = nil
		}
		return cli.Answer(ctx, c, func(ctx context.Context, _ string) (admin.Restored, error) {
			return c.Admin.Restore(ctx, saved, wait)
		}, restoredText)
	})
	return cmd
}

// maxBackup is how large a backup may be: as many namespaces as there can be, each with a
// page of configuration.
const maxBackup = 64 << 20

func readBackup(name string, stdin io.Reader) (admin.Backup, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return admin.Backup{}, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBackup+1))
	if err != nil {
		return admin.Backup{}, err
	}
	if len(text) > maxBackup {
		return admin.Backup{}, fmt.Errorf("it has more than %d MiB, and is no backup", maxBackup>>20)
	}
	return admin.ParseBackup(text)
}

func restoredText(d admin.Restored) string {
	text := fmt.Sprintf("%s %s\n", console.Good("restored"), console.Counted(len(d.Restored), "namespace"))
	for _, name := range d.Restored {
		text += "  " + console.Shown(name) + "\n"
	}
	if len(d.There) > 0 {
		text += fmt.Sprintf("%s there already\n", console.Counted(len(d.There), "namespace"))
	}
	return text
}

func waitOut(ctx context.Context, c *cli.Client, longest time.Duration) error {
	if err := cli.Write(c.Errs, fmt.Sprintf("waiting for %v, until no lease of the lost managers is valid\n", longest)); err != nil {
		return err
	}
	if !cli.Pause(ctx, longest) {
		return cli.StatusInterrupted
	}
	return nil
}
