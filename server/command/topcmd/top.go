package topcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"
)

// topKeysHelp fits into a narrow terminal too.
const topKeysHelp = `  q, Ctrl-C       leave
  n, p, ← →       the next namespace, the one before
  1, 2, 3, 4      owners, ranges, lookups, events
  f               find a key: who has it, and who had it
  ↑ ↓, PgUp PgDn  scroll
  s               sort owners by load, share or name
  /               only rows with this in them
  ?               explain

The bar of an owner is its load against its fair part, which
is what it would have if all loads were spread by weight:
half a bar is the fair part, a full one twice that or more.
If no owner reports loads it is the share of the keys.`

const topHelp = `Shows a namespace as it lives: who leads, the owners with their loads and shares,
what is on its way from one to another, the hottest keys, and what has happened last;
on pages of their own all ranges, the lookups, the events, and what became of a key.
It is drawn again every second, and fits itself to the terminal.

` + topKeysHelp + `

When no manager answers it says since when, and goes on showing what it last saw.

With --once it prints one picture and ends, with --json one line of JSON for each look
until it is interrupted, and with both a single one. Output that is no terminal needs
one of the two.`

// topOptions are the flags of "top".
type topOptions struct {
	*cli.Client
	once  bool
	every time.Duration
	sort  string
}

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a namespace live: owners, loads, moves, events",
		Long:  topHelp,
		Example: `  leasehold top -n presence
  leasehold top --once
  leasehold top --json | jq '.owners | length'`,
		Args: cli.NoArguments,
	}
	o := &topOptions{Client: cli.NewClient(cmd).InNamespace(cmd, "begin with the namespace of this `name`; the first if there is none")}
	cmd.Flags().BoolVar(&o.once, "once", false, "print one picture and end")
	cmd.Flags().DurationVar(&o.every, "every", time.Second, "how long to wait between two looks")
	cmd.Flags().StringVar(&o.sort, "sort", topSorts[0], "by what to sort owners: load, share or name")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.top(ctx, cmd) })
	return cmd
}

// leastEvery bounds what looking costs the leader.
const leastEvery = 100 * time.Millisecond

func (o *topOptions) top(ctx context.Context, cmd *cobra.Command) error {
	by, err := sortNamed(o.sort)
	switch {
	case err != nil:
		return err
	case o.every < leastEvery:
		return fmt.Errorf("--every %v: want at least %v", o.every, leastEvery)
	case o.once:
		return o.topOnce(ctx, by)
	case o.JSON:
		return o.topStream(ctx)
	case !o.Out.Terminal:
		return errors.New("top draws on a terminal, and this is none: say --once or --json")
	}
	return o.topLive(ctx, cmd.OutOrStdout(), by)
}

// topOnce prints one picture.
func (o *topOptions) topOnce(ctx context.Context, by topSort) error {
	seen, err := (&topLook{Wish: Wish{Namespace: o.Namespace}}).look(ctx, o.Admin)
	switch {
	case err != nil:
		return o.Explain(ctx, err)
	case o.Namespace != "" && seen.absent:
		return cli.Fail(cli.Advised(fmt.Errorf("there is no namespace %q", o.Namespace), cli.CreateIt(o.Namespace)))
	}
	return o.Print(seen, func() string { return topScreen(seen, topView{width: o.Out.Width, sort: by}) })
}

// topStream prints a line of JSON for each look, until it is interrupted, which is
// how it is meant to end.
func (o *topOptions) topStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failure error
	s := NewSource(o.Client, o.every, func(seen *Snapshot) {
		if failure = cli.WriteLine(o.Out, seen); failure != nil {
			cancel()
		}
	})
	s.Run(ctx)
	return failure
}
