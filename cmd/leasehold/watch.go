package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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

// calm is the pause before a stream that broke is opened again.
const calm = 500 * time.Millisecond

// watch follows events through one manager after the other, until it is
// interrupted, which is how it is meant to end.
func (c *client) watch(ctx context.Context) error {
	begun, told := false, false
	for {
		err := c.ask(ctx, func(within context.Context, to admin) error {
			// The stream has no deadline, but the first answer has.
			if _, err := to.GetStatus(within, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
				return err
			}
			begun, told = true, false
			return done{c.follow(ctx, to)}
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whatever broke, it was to end anyway
		}
		var broken interruptedStream
		switch silent := begun && leasehold.KindOf(err) == leasehold.Unavailable; {
		case errors.As(err, &broken):
		case silent: // all managers, after one was followed
			broken = interruptedStream{err}
		default:
			return err
		}
		if now := time.Now(); !told {
			if err := c.printEvent(eventDocument{Type: "gap", At: now.Format(time.RFC3339Nano), at: now, Text: broken.Error()}); err != nil {
				return err
			}
		}
		told = true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(calm):
		}
	}
}

// interruptedStream says that a stream of events broke for no fault of ours.
type interruptedStream struct{ cause error }

func (i interruptedStream) Error() string {
	return fmt.Sprintf("the manager went away, and events may be missing: %v", i.cause)
}

// follow prints the events of one stream until it breaks.
func (c *client) follow(ctx context.Context, to admin) error {
	stream, err := to.Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: c.namespace})
	if err != nil {
		return wire.ToError(err)
	}
	for {
		event, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return interruptedStream{errors.New("it ended the stream")}
		case err != nil && elsewhere(wire.ToError(err)):
			return interruptedStream{wire.ToError(err)}
		case err != nil:
			return wire.ToError(err)
		}
		if err := c.printEvent(eventJSON(event)); err != nil {
			return err
		}
	}
}

// An eventDocument is one line of "watch --json".
type eventDocument struct {
	At        string          `json:"at,omitempty"` // RFC 3339
	Namespace string          `json:"namespace,omitempty"`
	Missed    uint64          `json:"missed,omitempty"` // events that were lost before this one
	Type      string          `json:"type"`             // change, note, leader or gap
	Change    *changeDocument `json:"change,omitempty"`
	Note      *noteDocument   `json:"note,omitempty"`
	Leader    *leaderDocument `json:"leader,omitempty"`
	Text      string          `json:"text,omitempty"`

	at time.Time
}

type noteDocument struct {
	What  string `json:"what"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
}

type leaderDocument struct {
	Term   string `json:"term"`
	Leader string `json:"leader"` // "": nobody leads
}

func eventJSON(e *leaseholdv1.WatchResponse) eventDocument {
	d := eventDocument{Namespace: e.GetNamespace(), Missed: e.GetMissed(), Type: "unknown"}
	if e.GetAt() != nil {
		d.at = e.GetAt().AsTime()
		d.At = d.at.Format(time.RFC3339Nano)
	}
	switch event := e.GetEvent().(type) {
	case *leaseholdv1.WatchResponse_Change:
		change := changeJSON(event.Change)
		d.Type, d.Change = "change", &change
	case *leaseholdv1.WatchResponse_Note:
		d.Type, d.Note = "note", &noteDocument{event.Note.GetWhat(), event.Note.GetOwner(), event.Note.GetText()}
	case *leaseholdv1.WatchResponse_Leader:
		d.Type, d.Leader = "leader", &leaderDocument{decimal(event.Leader.GetTerm()), event.Leader.GetLeader()}
	}
	return d
}

func (c *client) printEvent(e eventDocument) error {
	if !c.json {
		return write(c.out, e.text())
	}
	return writeLine(c.out, e)
}

func (e eventDocument) text() string {
	var out strings.Builder
	if e.Missed > 0 {
		fmt.Fprintf(&out, "%s\n", bad(fmt.Sprintf("... %s missed: they came faster than they were read", counted(int(e.Missed), "event"))))
	}
	words := append([]string{timeText(e.at), orDash(e.Namespace)}, e.words()...)
	out.WriteString(strings.Join(words, "  ") + "\n")
	return out.String()
}

// words is what happened, without when and where.
func (e eventDocument) words() []string {
	switch {
	case e.Change != nil:
		c := e.Change
		return []string{fmt.Sprintf("lsn %d", c.LSN), c.what(), c.ownerText(), c.keys.String() + "@" + c.Generation}
	case e.Note != nil:
		return []string{shown(e.Note.What), orDash(e.Note.Owner), shown(e.Note.Text)}
	case e.Leader != nil && e.Leader.Leader == "":
		return []string{bad("nobody leads"), "in term " + e.Leader.Term}
	case e.Leader != nil:
		return []string{good(shown(e.Leader.Leader)) + " leads", "in term " + e.Leader.Term}
	case e.Type == "gap":
		return []string{bad("... " + shown(e.Text))}
	}
	return []string{"something that this version does not know"}
}
