package eventscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const watchHelp = `Prints what happens, as it happens, one event on a line, until it is interrupted
with Ctrl-C: leases that are granted, that end and that move, owners that join,
leaders that change. It begins now; "leasehold history" tells what was before.

If the manager that is asked goes away, another one is asked, until one answers.
What happened in between is not shown: with --json, and on the terminal, a line
says so.`

func NewWatchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print what happens, as it happens",
		Long:  watchHelp,
		Example: `  leasehold watch
  leasehold watch -n presence --json | jq 'select(.change.kind == "vacated")'`,
		Args: cli.NoArguments,
	}
	c := cli.NewClient(cmd).InNamespace(cmd, "only events of the namespace of this `name`")
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return watch(ctx, c) })
	return cmd
}

// watch follows events until it is interrupted, which is how it is meant to end.
func watch(ctx context.Context, c *cli.Client) error {
	for event, err := range c.Admin.Watch(ctx, c.Namespace) {
		if err != nil {
			return c.Explain(ctx, err)
		}
		if err := printEvent(c, event); err != nil {
			return err
		}
	}
	return nil
}

func printEvent(c *cli.Client, e admin.Event) error {
	if !c.JSON {
		return cli.Write(c.Out, eventText(e))
	}
	return cli.WriteLine(c.Out, e)
}

func eventText(e admin.Event) string {
	var out strings.Builder
	if e.Missed > 0 {
		fmt.Fprintf(&out, "%s\n", console.Bad(fmt.Sprintf("... %s missed: they came faster than they were read", console.Counted(int(e.Missed), "event"))))
	}
	words := append([]string{cli.TimeText(e.At), console.OrDash(e.Namespace)}, cli.EventWords(e)...)
	out.WriteString(strings.Join(words, "  ") + "\n")
	return out.String()
}
