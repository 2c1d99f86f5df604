package eventscmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
)

const eventsHelp = `Prints the journal of a namespace: which leases were granted, moved and ended, and
why they ended, newest last. The journal is in the store, and outlives leaders; it keeps
at least the last 65,536 changes. Managers that keep nothing on disk remember only what
has happened since the present leader began to lead, and it is said so.

Who has led is told in between, as far as the manager that was asked has seen it since
it was started. What else happens, owners that join or names that are fought over, is
not kept: "leasehold watch" prints that as it happens.

Kinds are granted, moved, vacated, leader and the causes for which a lease ends: expired,
released, left, refused and restarted. A loss is any change with which state is lost,
which is all that vacate. Times are those of the wall clocks of the managers.`

// eventsOptions are the flags of "events".
type eventsOptions struct {
	*cli.Client
	since string
	kinds []string
	most  uint32
}

const (
	usualEvents = 1000
	mostEvents  = 100_000
)

func NewEventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what has happened to a namespace, and why",
		Long:  eventsHelp,
		Example: `  leasehold events -n presence --since 1h
  leasehold events -n presence --kind loss --since 2026-11-10 --json`,
		Args: cli.NoArguments,
	}
	o := &eventsOptions{Client: cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)}
	cmd.Flags().StringVar(&o.since, "since", "", cli.SinceHelp)
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "only events of these `kinds`, with commas between")
	cmd.Flags().Uint32Var(&o.most, "most", usualEvents, "at most so many, the newest; up to 100,000")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(admin.EventKinds(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.events(ctx) })
	return cmd
}

func (o *eventsOptions) events(ctx context.Context) error {
	since, err := cli.ParseSince(o.since, time.Now())
	if err != nil {
		return err
	}
	if o.most == 0 || o.most > mostEvents {
		return fmt.Errorf("--most %d: want 1 to %d", o.most, mostEvents)
	}
	for _, k := range o.kinds {
		if !slices.Contains(admin.EventKinds(), k) {
			return fmt.Errorf("--kind %q: want %s", k, strings.Join(admin.EventKinds(), ", "))
		}
	}
	found, err := cli.Within(ctx, o.Client, func(ctx context.Context, namespace string) (admin.Events, error) {
		return o.Admin.Events(ctx, admin.EventQuery{Namespace: namespace, Since: since, Kinds: o.kinds, Most: int(o.most)})
	})
	if err != nil {
		return err
	}
	return o.Print(found, func() string { return eventsText(found, o.since != "" || len(o.kinds) > 0) })
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
