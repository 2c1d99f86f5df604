// Package eventscmd has the subcommands about what happens in a cluster.
package eventscmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const eventsHelp = `Prints the journal of a namespace: which leases were granted, moved and ended, and
why they ended, newest last. The journal is in the store, and outlives leaders; it keeps
at least the last 65,536 changes. Managers that keep nothing on disk remember only what
has happened since the present leader began to lead, and it is said so. Who has led is
told in between, as far as the manager that was asked has seen it since it was started.

With --follow it prints events as they happen, of one namespace or of all, until it is
interrupted with Ctrl-C. It begins with the present. It also tells what is not kept in
the journal, such as owners that join. If the manager that is asked goes away, another
one is asked, until one answers, and a line says that events may be missing.

Kinds are granted, moved, vacated, leader and the causes for which a lease ends: expired,
released, left, refused and restarted. A loss is any change with which state is lost,
which is all that vacate. Times are those of the wall clocks of the managers.

` + cli.KeyHelp

// options are the flags of "events".
type options struct {
	*cli.Client
	follow bool
	since  string
	kinds  []string
	key    string
	most   uint32

	parseKey *cli.KeyArgument
}

const (
	usualEvents = 1000
	mostEvents  = 100_000
)

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what has happened, or happens, and why",
		Long:  eventsHelp,
		Example: `  leasehold events -n presence --since 1h
  leasehold events -n presence --kind loss --since 2026-11-10 --json
  leasehold events -n presence --key alice
  leasehold events --follow
  leasehold events --follow -n presence --json | jq 'select(.change.kind == "vacated")'`,
		Args: cli.NoArguments,
	}
	o := &options{Client: cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace+"; with --follow, all are followed if none is named")}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print events as they happen, until interrupted")
	cmd.Flags().StringVar(&o.key, "key", "", "only changes of the range in which this `KEY` is")
	o.parseKey = cli.AddKeyFlag(cmd)
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "only events of these `kinds`, with commas between")
	cmd.Flags().StringVar(&o.since, "since", "", cli.SinceHelp)
	cmd.Flags().Uint32Var(&o.most, "most", usualEvents, "at most so many, the newest; up to 100,000")
	cmd.MarkFlagsMutuallyExclusive("follow", "since")
	cmd.MarkFlagsMutuallyExclusive("follow", "most")
	cli.CompleteWith(cmd, "kind", cli.OneOf(admin.EventKinds()...))
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error {
		q, err := o.query(cmd.Flags().Changed("key"))
		switch {
		case err != nil:
			return err
		case o.follow:
			return follow(ctx, o.Client, q)
		}
		return o.events(ctx, q)
	})
	return cmd
}

func (o *options) query(withKey bool) (q admin.EventQuery, err error) {
	if q.Since, err = cli.ParseSince(o.since, time.Now()); err != nil {
		return q, err
	}
	if o.most == 0 || o.most > mostEvents {
		return q, fmt.Errorf("--most %d: want 1 to %d", o.most, mostEvents)
	}
	for _, k := range o.kinds {
		if !slices.Contains(admin.EventKinds(), k) {
			return q, fmt.Errorf("--kind %q: want %s", k, strings.Join(admin.EventKinds(), ", "))
		}
	}
	q.Kinds, q.Most = o.kinds, int(o.most)
	if withKey {
		k, err := o.parseKey.Parse(o.key)
		if err != nil {
			return q, fmt.Errorf("--key: %w", err)
		}
		q.Key = &k.Key
	}
	return q, nil
}

func (o *options) events(ctx context.Context, q admin.EventQuery) error {
	return cli.Answer(ctx, o.Client, func(ctx context.Context, namespace string) (admin.Events, error) {
		q.Namespace = namespace
		return o.Admin.Events(ctx, q)
	}, func(found admin.Events) string {
		return eventsText(found, o.since != "" || len(o.kinds) > 0 || q.Key != nil)
	})
}

// eventsText writes events, of which only some were asked for.
func eventsText(d admin.Events, some bool) string {
	var out strings.Builder
	switch {
	case d.More:
		out.WriteString("Earlier ones are left out: ask for them with --most.\n")
	case d.Diskless:
		out.WriteString("These managers keep nothing on disk: what was before the present leader led is forgotten.\n")
	case d.Truncated:
		out.WriteString("What was before is forgotten.\n")
	}
	for _, e := range d.Events {
		out.WriteString(eventText(e))
	}
	switch {
	case len(d.Events) == 0 && some:
		out.WriteString("Nothing of that has happened, as far as is remembered.\n")
	case len(d.Events) == 0:
		out.WriteString("Nothing has happened, as far as is remembered.\n")
	}
	return out.String()
}

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
