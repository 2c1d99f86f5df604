package managercmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

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

const restoreExample = `  leasehold manager restore leasehold.backup.json`

func newRestoreCommand() *cobra.Command {
	var stopped bool
	cmd := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Create the namespaces of a backup in a new group of managers",
		Long:    restoreHelp,
		Example: restoreExample,
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
		restored, err := c.Admin.Restore(ctx, saved, wait)
		if err != nil {
			return c.Explain(ctx, err)
		}
		return c.Print(restored, func() string { return restoredText(restored) })
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

// waitOut waits until no lease of a group that is gone can be valid.
func waitOut(ctx context.Context, c *cli.Client, longest time.Duration) error {
	if err := cli.Write(c.Errs, fmt.Sprintf("waiting for %v, until no lease of the lost managers is valid\n", longest)); err != nil {
		return err
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return cli.StatusInterrupted
	case <-timer.C:
		return nil
	}
}
