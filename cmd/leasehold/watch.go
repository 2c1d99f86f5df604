package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
)

const watchHelp = `Prints what happens, as it happens, one event on a line, until it is interrupted
with Ctrl-C: leases that are granted, that end and that move, owners that join,
leaders that change. It begins now; "leasehold history" tells what was before.

If the manager that is asked goes away, another one is asked, until one answers.
What happened in between is not shown: with --json, and on the terminal, a line
says so.`

func newWatchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print what happens, as it happens",
		Long:  watchHelp,
		Example: `  leasehold watch
  leasehold watch -n presence --json | jq 'select(.change.kind == "vacated")'`,
		Args: noArguments,
	}
	c := newClient(cmd).inNamespace(cmd, "only events of the namespace of this `name`")
	cmd.RunE = c.run(func(ctx context.Context, _ []string) error { return c.watch(ctx) })
	return cmd
}

// watch follows events until it is interrupted, which is how it is meant to end.
func (c *client) watch(ctx context.Context) error {
	for event, err := range c.admin.Watch(ctx, c.namespace) {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was interrupted
		}
		if err != nil {
			return c.explain(ctx, err)
		}
		if err := c.printEvent(event); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) printEvent(e admin.Event) error {
	if !c.json {
		return write(c.out, eventText(e))
	}
	return writeLine(c.out, e)
}

func eventText(e admin.Event) string {
	var out strings.Builder
	if e.Missed > 0 {
		fmt.Fprintf(&out, "%s\n", bad(fmt.Sprintf("... %s missed: they came faster than they were read", counted(int(e.Missed), "event"))))
	}
	words := append([]string{timeText(e.At), orDash(e.Namespace)}, eventWords(e)...)
	out.WriteString(strings.Join(words, "  ") + "\n")
	return out.String()
}

// eventWords is what happened, without when and where.
func eventWords(e admin.Event) []string {
	switch {
	case e.Change != nil:
		c := e.Change
		return []string{fmt.Sprintf("lsn %d", c.LSN), changeText(*c), changedOwner(*c), fmt.Sprintf("%v@%d", c.Keys(), c.Generation)}
	case e.Note != nil:
		return []string{shown(e.Note.What), orDash(e.Note.Owner), shown(e.Note.Text)}
	case e.Leader != nil && e.Leader.Leader == "":
		return []string{bad("nobody leads"), fmt.Sprintf("in term %d", e.Leader.Term)}
	case e.Leader != nil:
		return []string{good(shown(e.Leader.Leader)) + " leads", fmt.Sprintf("in term %d", e.Leader.Term)}
	case e.Type == admin.EventGap:
		return []string{bad("... " + shown(e.Text))}
	}
	return []string{"something that this version does not know"}
}
