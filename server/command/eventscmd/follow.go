package eventscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// follow prints events until it is interrupted, which is how it is meant to end.
func follow(ctx context.Context, c *cli.Client, q admin.EventQuery) error {
	for event, err := range c.Admin.Watch(ctx, c.Namespace) {
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was interrupted
		case err != nil:
			return c.Explain(ctx, err)
		case event.Type == admin.EventGap || q.Selects(event):
		case event.Missed == 0:
			continue
		default:
			event = admin.Event{At: event.At, Type: admin.EventGap, Missed: event.Missed, Text: "some of these may be of the kind that is asked for"}
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
