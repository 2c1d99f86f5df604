package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const historyHelp = `Says who held a key, since when, and why that ended, newest first, as far back as
the store remembers; without a store, as far back as the present leader leads. Times are those of the wall clocks of the managers.

With --since it says who held it since then: the last line is the change that was in force at that time, if one is remembered.

` + keyHelp

func newHistoryCommand() *cobra.Command {
	var (
		most  uint32
		since string
	)
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "Say who held a key, and why that ended",
		Long:  historyHelp,
		Example: `  leasehold history alice -n presence
  leasehold history alice -n presence --since 36h
  leasehold history alice -n presence --most 1000 --json`,
		Args: oneArgument("a key"),
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	k := addKeyFlag(cmd)
	cmd.Flags().Uint32Var(&most, "most", 100, "at most so many changes")
	cmd.Flags().StringVar(&since, "since", "", sinceHelp)
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		key, err := k.parse(args[0])
		if err != nil {
			return err
		}
		from, err := parseSince(since, time.Now())
		if err != nil {
			return err
		}
		return c.history(ctx, key, most, from)
	})
	return cmd
}

func (c *client) history(ctx context.Context, key *keyArgument, most uint32, since time.Time) error {
	history, err := within(ctx, c, func(ctx context.Context, namespace string) (admin.History, error) {
		return c.admin.History(ctx, namespace, key.key, most, since)
	})
	if err != nil {
		return err
	}
	document := struct {
		Name string `json:"name,omitempty"`
		admin.History
	}{key.name, history}
	return c.print(document, func() string { return historyText(history, key) })
}

func historyText(h admin.History, key *keyArgument) string {
	text := console.Facts([]console.Entry{{"key", key.text()}, {"namespace", console.Shown(h.Namespace)}}) + "\n"
	if len(h.Entries) == 0 && h.Before == nil {
		return text + "Nobody has held it, as far as the store remembers.\n"
	}
	var rows [][]string
	if b := h.Before; b != nil {
		rows = append(rows, []string{"-", "-", "held all along", console.OrDash(b.Owner), console.OrDash(b.Addr), decimal(uint64(b.Generation)), b.Keys().String()})
	}
	for _, e := range h.Entries {
		rows = append(rows, []string{
			timeText(e.At), console.Grouped(uint64(e.LSN)), changeText(e), console.OrDash(e.Owner), console.OrDash(e.Addr), decimal(uint64(e.Generation)), e.Keys().String(),
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
