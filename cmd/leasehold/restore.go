package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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

const restoreExample = `  leasehold restore leasehold.backup.json`

func newRestoreCommand() *cobra.Command {
	var stopped bool
	cmd := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Create the namespaces of a backup in a new group of managers",
		Long:    restoreHelp,
		Example: restoreExample,
		Args:    oneArgument("the file that a backup is in, or - for standard input"),
	}
	cmd.Flags().BoolVar(&stopped, "owners-stopped", false, "do not wait for leases to run out: no owner runs")
	c := newClient(cmd)
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		wanted, err := readBackup(args[0], cmd.InOrStdin())
		if err != nil {
			return failed{err}
		}
		return c.restore(ctx, wanted, stopped)
	})
	return cmd
}

// maxBackup is how large a backup may be: as many namespaces as there can be, each with a
// page of configuration.
const maxBackup = 64 << 20

// readBackup reads the namespaces of a backup, as they are to be created.
func readBackup(name string, stdin io.Reader) ([]*leaseholdv1.NamespaceConfig, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBackup+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBackup {
		return nil, fmt.Errorf("%s has more than %d MiB, and is no backup", name, maxBackup>>20)
	}
	return parseBackup(name, text)
}

// parseBackup reads what "backup" has printed.
func parseBackup(name string, text []byte) ([]*leaseholdv1.NamespaceConfig, error) {
	var saved backupDocument
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&saved); err != nil {
		return nil, fmt.Errorf("%s is no backup: %w", name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is no backup: something follows it", name)
	}
	if saved.Format != backupFormat {
		return nil, fmt.Errorf("%s is no backup, or one of another version: leaseholdBackup is %d, want %d", name, saved.Format, backupFormat)
	}
	var out []*leaseholdv1.NamespaceConfig
	seen := make(map[string]bool)
	for i := range saved.Namespaces {
		n, err := saved.Namespaces[i].config()
		if err != nil {
			return nil, err
		}
		if seen[n.GetName()] {
			return nil, fmt.Errorf("%s has namespace %s twice", name, n.GetName())
		}
		seen[n.GetName()] = true
		out = append(out, n)
	}
	return out, nil
}

// A restoredDocument is what "restore --json" prints.
type restoredDocument struct {
	Restored []string `json:"restored"`
	There    []string `json:"thereAlready"`
}

// restore creates namespaces. Nothing is created if one of them is there and is another.
func (c *client) restore(ctx context.Context, wanted []*leaseholdv1.NamespaceConfig, stopped bool) error {
	missing, there, err := c.missing(ctx, wanted)
	if err != nil {
		return err
	}
	if len(missing) > 0 && !stopped {
		if err := c.waitOut(ctx, missing); err != nil {
			return err
		}
	}
	done := restoredDocument{Restored: []string{}, There: there}
	for _, n := range missing {
		// All that the lost group can have granted is below what the clock stands for.
		n.AfterGeneration = storage.Above(n.GetAfterGeneration(), storage.Clock(time.Now().Unix()), 0)
		if err := c.change(ctx, func(ctx context.Context, to admin) error {
			_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: n})
			return err
		}); err != nil {
			return fmt.Errorf("restored %d of %d namespaces, and it can be tried again: %w", len(done.Restored), len(missing), err)
		}
		done.Restored = append(done.Restored, n.GetName())
	}
	return c.print(done, done.text)
}

func (d restoredDocument) text() string {
	text := fmt.Sprintf("%s %s\n", good("restored"), counted(len(d.Restored), "namespace"))
	for _, name := range d.Restored {
		text += "  " + shown(name) + "\n"
	}
	if len(d.There) > 0 {
		text += fmt.Sprintf("%s there already\n", counted(len(d.There), "namespace"))
	}
	return text
}

// missing returns which of some namespaces are not there, and which are.
func (c *client) missing(ctx context.Context, wanted []*leaseholdv1.NamespaceConfig) (missing []*leaseholdv1.NamespaceConfig, there []string, err error) {
	there = []string{}
	err = c.ask(ctx, func(ctx context.Context, to admin) error {
		all, err := namespaces(ctx, to)
		if err != nil {
			return err
		}
		now := make(map[string]*leaseholdv1.NamespaceConfig)
		for _, n := range all {
			now[n.GetName()] = n
		}
		missing, there = nil, []string{}
		for _, n := range wanted {
			switch is := now[n.GetName()]; {
			case is == nil:
				missing = append(missing, n)
			case !restoredFrom(is, n):
				return leasehold.Errorf("restore", leasehold.Exists, n.GetName(), "there is one already, and not as the backup would make it; a backup is for a group that does not have its namespaces")
			default:
				there = append(there, n.GetName())
			}
		}
		return nil
	})
	return missing, there, err
}

// restoredFrom reports whether a namespace is as a backup makes it. It begins later than it must, depending on
// when it was restored.
func restoredFrom(is, saved *leaseholdv1.NamespaceConfig) bool {
	begun, ok := proto.Clone(saved).(*leaseholdv1.NamespaceConfig)
	begun.AfterGeneration = is.GetAfterGeneration()
	return ok && is.GetAfterGeneration() >= saved.GetAfterGeneration() && proto.Equal(is, begun)
}

// waitOut waits until no lease of a group that is gone can be valid.
func (c *client) waitOut(ctx context.Context, lost []*leaseholdv1.NamespaceConfig) error {
	var longest time.Duration
	for _, n := range lost {
		stored, err := wire.ToNamespace(n)
		if err != nil {
			return err
		}
		longest = max(longest, stored.Drift.Stretch(stored.Lease))
	}
	if err := write(c.errs, fmt.Sprintf("waiting for %v, until no lease of the lost managers is valid\n", longest)); err != nil {
		return err
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return statusInterrupted
	case <-timer.C:
		return nil
	}
}
