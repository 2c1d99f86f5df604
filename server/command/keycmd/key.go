// Package keycmd is the subcommand "key".
package keycmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const findHelp = `Prints the owner of a key, its address, and the generation of its lease.

` + cli.KeyHelp

// New returns the command.
func New() *cobra.Command {
	return cli.Group("key", "Show the owner of a key, and its history", "A key is a 64-bit number, usually the hash of a name.", newFindCommand(), newHistoryCommand())
}

func newFindCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "find KEY",
		Short: "Show the owner of a key",
		Long:  findHelp,
		Example: `  leasehold key find alice -n presence
  leasehold key find 0x4000000000000000 -n presence`,
		Args: cli.OneArgument("a key"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	k := cli.AddKeyFlag(cmd)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		key, err := k.Parse(args[0])
		if err != nil {
			return err
		}
		return find(ctx, c, key)
	})
	return cmd
}

func find(ctx context.Context, c *cli.Client, key *cli.KeyArgument) error {
	type document struct {
		Name string `json:"name,omitempty"`
		admin.Found
	}
	return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (document, error) {
		found, err := c.Admin.Find(ctx, namespace, key.Key)
		return document{key.Name, found}, err
	}, func(d document) string { return foundText(d.Found, key) })
}

func foundText(f admin.Found, key *cli.KeyArgument) string {
	return console.Facts([]console.Entry{
		{"key", key.Text()},
		{"owner", cli.OrNone(f.Owner)},
		console.If(f.Owner != "", "address", console.OrDash(f.Addr)),
		console.If(f.Owner != "", "generation", cli.Decimal(uint64(f.Generation))),
		{"range", fmt.Sprintf("%v, %s of the keys", f.Keys(), console.Percent(f.Share))},
		{"state lost", cli.LostText(f.Range)},
		{"as of", "LSN " + console.Grouped(uint64(f.LSN))},
	})
}

const historyHelp = `Prints the owners of a key, since when, and why each lease ended, newest first, as far
back as the journal in the store goes; with --store flease, back to the election of the
current leader. Times are wall clock times of the managers.
With --since the last line is the change that was in force at that time, if it is still in
the journal.

` + cli.KeyHelp

func newHistoryCommand() *cobra.Command {
	var (
		most  uint32
		since string
	)
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "Show the owners of a key, and why each lease ended",
		Long:  historyHelp,
		Example: `  leasehold key history alice -n presence
  leasehold key history alice -n presence --since 36h
  leasehold key history alice -n presence --most 1000 --json`,
		Args: cli.OneArgument("a key"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	k := cli.AddKeyFlag(cmd)
	cmd.Flags().Uint32Var(&most, "most", 100, "maximum number of changes")
	cmd.Flags().StringVar(&since, "since", "", cli.SinceHelp)
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		key, err := k.Parse(args[0])
		if err != nil {
			return err
		}
		from, err := cli.ParseSince(since, time.Now())
		if err != nil {
			return err
		}
		return history(ctx, c, key, most, from)
	})
	return cmd
}

func history(ctx context.Context, c *cli.Client, key *cli.KeyArgument, most uint32, since time.Time) error {
	type document struct {
		Name string `json:"name,omitempty"`
		admin.History
	}
	return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (document, error) {
		history, err := c.Admin.History(ctx, namespace, key.Key, most, since)
		return document{key.Name, history}, err
	}, func(d document) string { return historyText(d.History, key) })
}

func historyText(h admin.History, key *cli.KeyArgument) string {
	text := console.Facts([]console.Entry{{"key", key.Text()}, {"namespace", console.Shown(h.Namespace)}}) + "\n"
	if len(h.Entries) == 0 && h.Before == nil {
		return text + "The journal has no owner of this key.\n"
	}
	var rows [][]string
	if b := h.Before; b != nil {
		rows = append(rows, []string{"-", "-", "held before", console.OrDash(b.Owner), console.OrDash(b.Addr), cli.Decimal(uint64(b.Generation)), b.Keys().String()})
	}
	for _, e := range h.Entries {
		rows = append(rows, []string{
			cli.TimeText(e.At), console.Grouped(uint64(e.LSN)), cli.ChangeText(e), console.OrDash(e.Owner), console.OrDash(e.Addr), cli.Decimal(uint64(e.Generation)), e.Keys().String(),
		})
	}
	text += console.Table([]console.Column{
		console.Left("TIME"), console.Number("LSN"), console.Left("CHANGE"), console.Left("OWNER"), console.Left("ADDRESS"), console.Number("GENERATION"), console.Left("RANGE"),
	}, rows)
	if h.More {
		text += "Earlier changes are omitted: raise --most to show them.\n"
	}
	switch {
	case h.Diskless:
		text += "Earlier changes are not available: these managers keep only changes since the current leader was elected.\n"
	case h.Truncated:
		text += "Earlier changes are no longer in the journal.\n"
	}
	return text
}
