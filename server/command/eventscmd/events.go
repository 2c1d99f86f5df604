// Package eventscmd is the subcommand "events".
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
why they ended, newest last. The journal is in the store and survives leader changes; it
keeps at least the last 65,536 changes. Managers with --store flease keep only the changes
since the current leader was elected, and the output states it. Leader changes are shown
as far as the manager that answers has seen them since its start.

With --follow it prints events as they happen, of one namespace or of all, until it is
interrupted with Ctrl-C, starting from now. This includes events that the journal does not
contain, such as joining owners. If the manager becomes unavailable, the command connects
to another one, and prints that events may be missing.

Kinds are granted, moved, vacated, leader and the causes for which a lease ends: expired,
released, left, refused, restarted and died. A loss is any change with which state is lost,
which is all that vacate. Times are wall clock times of the managers.

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
	defaultEvents = 1000
	maxEvents     = 100_000
)

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print past or current events and their causes",
		Long:  eventsHelp,
		Example: `  leasehold events -n presence --since 1h
  leasehold events -n presence --kind loss --since 2026-11-10 --json
  leasehold events -n presence --key alice
  leasehold events --follow
  leasehold events --follow -n presence --json | jq 'select(.change.kind == "vacated")'`,
		Args: cli.NoArguments,
	}
	o := &options{Client: cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace+"; --follow without it follows all namespaces")}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print events as they happen, until interrupted")
	cmd.Flags().StringVar(&o.key, "key", "", "only changes of the range with this `KEY`")
	o.parseKey = cli.AddKeyFlag(cmd)
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "only events of these comma-separated `kinds`")
	cmd.Flags().StringVar(&o.since, "since", "", cli.SinceHelp)
	cmd.Flags().Uint32Var(&o.most, "most", defaultEvents, "maximum number of events, the newest; up to 100,000")
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
	if o.most == 0 || o.most > maxEvents {
		return q, fmt.Errorf("--most %d: want 1 to %d", o.most, maxEvents)
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

// eventsText formats events; filtered means that a filter selected them.
func eventsText(d admin.Events, filtered bool) string {
	var out strings.Builder
	switch {
	case d.More:
		out.WriteString("Earlier events are omitted: raise --most to show them.\n")
	case d.Diskless:
		out.WriteString("Earlier events are not available: these managers keep only events since the current leader was elected.\n")
	case d.Truncated:
		out.WriteString("Earlier events are no longer in the journal.\n")
	}
	for _, e := range d.Events {
		out.WriteString(eventText(e))
	}
	switch {
	case len(d.Events) == 0 && filtered:
		out.WriteString("The journal has no such event.\n")
	case len(d.Events) == 0:
		out.WriteString("The journal has no events.\n")
	}
	return out.String()
}

// follow prints events until it is interrupted, which is its normal end.
func follow(ctx context.Context, c *cli.Client, q admin.EventQuery) error {
	for event, err := range c.Admin.Watch(ctx, c.Namespace) {
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // interrupted
		case err != nil:
			return c.Explain(ctx, err)
		case event.Type == admin.EventGap || q.Selects(event):
		case event.Missed == 0:
			continue
		default:
			event = admin.Event{At: event.At, Type: admin.EventGap, Missed: event.Missed, Text: "some of these may match the filter"}
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
		fmt.Fprintf(&out, "%s\n", console.Bad(fmt.Sprintf("... %s missed: the reader was too slow", console.Counted(int(e.Missed), "event"))))
	}
	words := append([]string{cli.TimeText(e.At), console.OrDash(e.Namespace)}, cli.EventWords(e)...)
	out.WriteString(strings.Join(words, "  ") + "\n")
	return out.String()
}
