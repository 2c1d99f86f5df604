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
		return "The tables are in an external store, and the managers form no group.\n"
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

const removeHelp = `Removes a manager from the group, whether it runs or not. Its data becomes useless: it
can join again only as a new member, with an empty data directory.`

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

const backupHelp = `Prints what a group of managers needs to start again after the loss of all disks: the
configuration of every namespace, and the newest generation granted in it. Store it on
another computer; "leasehold manager restore" reads it.

Leases are not included: they last for seconds, and a stale table would be wrong.`

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Print a backup for a restart after the loss of all disks",
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

const restoreHelp = `Creates the namespaces of a backup in a new group of managers, after the old group is
lost permanently. Their generations start far above those of the backup, so that old
fencing tokens stay invalid, and databases can keep the tokens they have recorded.

No manager of the old group may run: owners that still renew with it would own their
keys at the same time as owners of the new group. Their existing leases must expire, so
restore first waits for the longest lease. Pass --owners-stopped if no owner runs.

Restart owners and lookups afterwards. A process that is not restarted remembers the old
group's term, and ignores the new leader until its term is higher.

Repeating a restore is safe: existing namespaces are left unchanged.`

func newRestoreCommand() *cobra.Command {
	var stopped bool
	cmd := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Create the namespaces of a backup in a new group of managers",
		Long:    restoreHelp,
		Example: "  leasehold manager restore leasehold.backup.json",
		Args:    cli.OneArgument("the file with a backup, or - for standard input"),
	}
	cmd.Flags().BoolVar(&stopped, "owners-stopped", false, "do not wait for leases to expire: no owner runs")
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

// maxBackup bounds the size of a backup: the maximum number of namespaces, with a page of
// configuration each.
const maxBackup = 64 << 20

func readBackup(name string, stdin io.Reader) (admin.Backup, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return admin.Backup{}, err
		}
		defer f.Close() //nolint:errcheck // read-only
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBackup+1))
	if err != nil {
		return admin.Backup{}, err
	}
	if len(text) > maxBackup {
		return admin.Backup{}, fmt.Errorf("the file has more than %d MiB, which is too large for a backup", maxBackup>>20)
	}
	return admin.ParseBackup(text)
}

func restoredText(d admin.Restored) string {
	text := fmt.Sprintf("%s %s\n", console.Good("restored"), console.Counted(len(d.Restored), "namespace"))
	for _, name := range d.Restored {
		text += "  " + console.Shown(name) + "\n"
	}
	if len(d.There) > 0 {
		text += fmt.Sprintf("%s existed already\n", console.Counted(len(d.There), "namespace"))
	}
	return text
}

func waitOut(ctx context.Context, c *cli.Client, longest time.Duration) error {
	if err := cli.Write(c.Errs, fmt.Sprintf("waiting %v until every lease of the lost managers has expired\n", longest)); err != nil {
		return err
	}
	if !cli.Pause(ctx, longest) {
		return cli.StatusInterrupted
	}
	return nil
}
