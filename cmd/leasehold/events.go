package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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

// eventKinds are what can be asked for with --kind.
var eventKinds = [...]string{"loss", "granted", "moved", "vacated", "leader", "expired", "released", "left", "refused", "restarted"}

// eventsOptions are the flags of "events".
type eventsOptions struct {
	*client
	since string
	kinds []string
	most  uint32
}

const (
	usualEvents = 1000
	mostEvents  = 100_000
	// eventsPage is how many changes are asked for at a time.
	eventsPage = 4096
	// clockSlack is by how much the wall clocks of leaders may differ: a change is
	// looked for behind others that are older than wanted by no more than that.
	clockSlack = 5 * time.Minute
)

func newEventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what has happened to a namespace, and why",
		Long:  eventsHelp,
		Example: `  leasehold events -n presence --since 1h
  leasehold events -n presence --kind loss --since 2026-11-10 --json`,
		Args: noArguments,
	}
	o := &eventsOptions{client: newClient(cmd).inNamespace(cmd, usualNamespace)}
	cmd.Flags().StringVar(&o.since, "since", "", sinceHelp)
	cmd.Flags().StringSliceVar(&o.kinds, "kind", nil, "only events of these `kinds`, with commas between")
	cmd.Flags().Uint32Var(&o.most, "most", usualEvents, "at most so many, the newest; up to 100,000")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(eventKinds[:], cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = o.run(func(ctx context.Context, _ []string) error { return o.events(ctx) })
	return cmd
}

// An eventsDocument is what "events --json" prints, newest last.
type eventsDocument struct {
	Namespace string          `json:"namespace"`
	Events    []eventDocument `json:"events"`
	More      bool            `json:"more"`      // there are earlier ones that were not asked for
	Truncated bool            `json:"truncated"` // there were earlier ones, and they are forgotten
	// Diskless: they are forgotten because the managers keep nothing on disk.
	Diskless bool `json:"diskless"`
}

func (o *eventsOptions) events(ctx context.Context) error {
	since, err := parseSince(o.since, time.Now())
	if err != nil {
		return err
	}
	if o.most == 0 || o.most > mostEvents {
		return fmt.Errorf("--most %d: want 1 to %d", o.most, mostEvents)
	}
	for _, k := range o.kinds {
		if !slices.Contains(eventKinds[:], k) {
			return fmt.Errorf("--kind %q: want %s", k, strings.Join(eventKinds[:], ", "))
		}
	}
	var document eventsDocument
	if err := o.askWithin(ctx, func(ctx context.Context, to admin) error {
		j := journal{namespace: o.namespace, since: since, kinds: o.kinds, most: int(o.most)}
		err := j.read(ctx, to)
		document = j.document()
		return err
	}); err != nil {
		return err
	}
	return o.print(document, func() string { return document.text(o.since != "" || len(o.kinds) > 0) })
}

// A journal reads backwards what has happened, until it has enough.
type journal struct {
	namespace string
	since     time.Time // the zero time: as far back as it goes
	kinds     []string  // empty: all
	most      int

	events          []eventDocument // newest first
	more, truncated bool
	diskless        bool
}

func (j *journal) read(ctx context.Context, to admin) error {
	status, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return err
	}
	for before := uint64(0); ; {
		page, err := to.ListChanges(ctx, &leaseholdv1.ListChangesRequest{
			Version: wire.Version, Namespace: j.namespace, Before: before, Most: eventsPage,
		})
		if err != nil {
			return err
		}
		for _, c := range page.GetChanges() {
			before = c.GetLsn()
			if !j.take(pastJSON(j.namespace, c)) {
				j.lead(status.GetLeaderships())
				return nil
			}
		}
		if !page.GetMore() || len(page.GetChanges()) == 0 {
			j.truncated, j.diskless = page.GetTruncated(), page.GetBegun() > 0
			j.lead(status.GetLeaderships())
			return nil
		}
	}
}

// take takes up the change before, if it is wanted, and reports whether to go on.
func (j *journal) take(e eventDocument) bool {
	switch {
	case e.at.Before(j.since):
		return e.at.After(j.since.Add(-clockSlack))
	case !j.wants(e):
		return true
	case len(j.events) == j.most:
		j.more = true
		return false
	}
	j.events = append(j.events, e)
	return true
}

// wants reports whether an event is of a kind that is asked for.
func (j *journal) wants(e eventDocument) bool {
	return len(j.kinds) == 0 || slices.ContainsFunc(j.kinds, func(kind string) bool {
		if e.Change == nil {
			return kind == e.Type
		}
		return kind == e.Change.Kind || kind == e.Change.Cause || kind == "loss" && e.Change.Kind == "vacated"
	})
}

// lead adds who has led, within the time that the changes are from.
func (j *journal) lead(list []*leaseholdv1.Leadership) {
	from := j.since
	if n := len(j.events); j.more && n > 0 {
		from = j.events[n-1].at
	}
	for _, l := range list {
		if e := leadershipJSON(l); !e.at.Before(from) && j.wants(e) {
			// Changes stay in their order, whatever the clocks of the leaders say.
			at := slices.IndexFunc(j.events, func(other eventDocument) bool { return !other.at.After(e.at) })
			if at < 0 {
				at = len(j.events)
			}
			j.events = slices.Insert(j.events, at, e)
		}
	}
	if len(j.events) > j.most {
		j.events, j.more = j.events[:j.most], true
	}
}

func (j *journal) document() eventsDocument {
	d := eventsDocument{Namespace: j.namespace, Events: []eventDocument{}, More: j.more, Truncated: j.truncated, Diskless: j.diskless}
	for _, e := range slices.Backward(j.events) {
		d.Events = append(d.Events, e)
	}
	return d
}

func (d eventsDocument) text(some bool) string {
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
		out.WriteString(e.text())
	}
	switch {
	case len(d.Events) == 0 && some:
		out.WriteString("Nothing of that has happened, as far as is remembered.\n")
	case len(d.Events) == 0:
		out.WriteString("Nothing has happened, as far as is remembered.\n")
	}
	return out.String()
}
