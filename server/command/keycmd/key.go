// Package keycmd has the subcommands about one key.
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

const findHelp = `Says who holds a key, where that server is, and under which generation.

` + cli.KeyHelp

// New returns the command.
func New() *cobra.Command {
	return cli.Group("key", "Say who holds a key, and who held it", "A key is a number of 64 bits, mostly the hash of a name.", newFindCommand(), newHistoryCommand())
}

func newFindCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "find KEY",
		Short: "Say who holds a key",
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
		{"owner", cli.OrNobody(f.Owner)},
		console.If(f.Owner != "", "address", console.OrDash(f.Addr)),
		console.If(f.Owner != "", "generation", cli.Decimal(uint64(f.Generation))),
		{"range", fmt.Sprintf("%v, %s of the keys", f.Keys(), console.Percent(f.Share))},
		{"state lost", cli.LostText(f.Range)},
		{"as of", "LSN " + console.Grouped(uint64(f.LSN))},
	})
}

const historyHelp = `Says who held a key, since when, and why that ended, newest first, as far back as
the store remembers; without a store, as far back as the present leader leads. Times are those of the wall clocks of the managers.

With --since it says who held it since then: the last line is the change that was in force at that time, if one is remembered.

` + cli.KeyHelp

func newHistoryCommand() *cobra.Command {
	var (
		most  uint32
		since string
	)
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "Say who held a key, and why that ended",
		Long:  historyHelp,
		Example: `  leasehold key history alice -n presence
  leasehold key history alice -n presence --since 36h
  leasehold key history alice -n presence --most 1000 --json`,
		Args: cli.OneArgument("a key"),
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	k := cli.AddKeyFlag(cmd)
	cmd.Flags().Uint32Var(&most, "most", 100, "at most so many changes")
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
		return text + "Nobody has held it, as far as the store remembers.\n"
	}
	var rows [][]string
	if b := h.Before; b != nil {
		rows = append(rows, []string{"-", "-", "held all along", console.OrDash(b.Owner), console.OrDash(b.Addr), cli.Decimal(uint64(b.Generation)), b.Keys().String()})
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
		text += "There is more: ask for it with --most.\n"
	}
	switch {
	case h.Diskless:
		text += "These managers keep nothing on disk: what was before the present leader led is forgotten.\n"
	case h.Truncated:
		text += "What was before that is forgotten.\n"
	}
	return text
}
