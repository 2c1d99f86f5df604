package fleasecmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/fleasecontrol"
)

const fleaseStatusHelp = `Shows the view of one member: the members it receives messages from, the leases it
holds, and clock errors. With the name of a resource it also shows the holder. This view
is eventually consistent: it can be stale by up to a lease.

Exit status: 0 success; 2 the member does not respond.`

func newStatusCommand() *cobra.Command {
	var (
		member string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status [RESOURCE]",
		Short: "Show the leases, members and clock errors that a member sees",
		Long:  fleaseStatusHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onlyLoopback("--member", member); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), admin.DefaultTimeout)
			defer cancel()
			s, err := fleasecontrol.Client(member).Status(ctx, strings.Join(args, ""))
			if err != nil {
				return cli.Fail(err)
			}
			return cli.PrintAs(cmd, asJSON, s, func() string { return fleaseStatusText(&s, time.Now()) })
		},
	}
	cmd.Flags().StringVar(&member, "member", defaultMember, "control `address` of a member")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print only JSON")
	return cmd
}

func fleaseStatusText(s *fleasecontrol.Status, now time.Time) string {
	state := console.Good("votes")
	switch {
	case s.Ready:
	case s.Error != "":
		state = console.Bad(console.Shown(s.Error))
	case len(s.Strangers) > 0:
		state = console.Bad("waits until processes of another configuration stop, or its earlier promises expire")
	default:
		state = console.Bad("waits until its earlier promises expire")
	}
	var resource console.Entry
	if s.Resource != nil {
		resource = console.Entry{s.Resource.Resource, fleaseResourceText(s.Resource, now)}
	}
	text := console.Facts([]console.Entry{
		{"member", fmt.Sprintf("%d at %s, %s", s.Self, console.Shown(s.Addr), state)},
		{"leases", fmt.Sprintf("%d held, %d waited for; %d acquired since the start, %d lost", s.Held, s.Waiting, s.Counts.Acquired, s.Counts.Lost)},
		{"resources", fmt.Sprintf("%d known", s.Resources)},
		{"clock", fleaseClockText(&s.Clock, now)},
		{"packets", fleaseTrafficText(&s.Traffic)},
		resource,
	})
	return text + "\n" + fleaseMembersText(s.Members, now) + fleaseStrangersText(s.Strangers, now) + fleaseLeasesText(s, now)
}

func fleaseResourceText(r *flease.ResourceStatus, now time.Time) string {
	text := "no holder known"
	switch h := r.Holder; {
	case h.Unsure:
		text = "no message about it received, so another member may hold it"
	case h.ID != 0:
		text = fmt.Sprintf("held by member %d as last received, fence %d, expires in %s unless renewed", h.ID, h.Fence, console.Brief(h.Until.Sub(now)))
	}
	if r.Waiting > 0 {
		text += fmt.Sprintf("; %d waiting here: %s", r.Waiting, console.Shown(r.Why))
	}
	return text
}

func fleaseTrafficText(t *flease.Traffic) string {
	text := fmt.Sprintf("%d received, %d sent, %d lost here", t.PacketsIn, t.PacketsOut, t.Lost)
	if t.Refused > 0 {
		text += ", " + console.Bad(fmt.Sprintf("%d rejected: see the log, the key may differ", t.Refused))
	}
	if t.Strange > 0 {
		text += ", " + console.Bad(fmt.Sprintf("%d from processes of another configuration", t.Strange))
	}
	return text
}

func fleaseClockText(c *flease.ClockStatus, now time.Time) string {
	switch {
	case c.Wrong:
		return console.Bad("wrong, according to most other members")
	case c.Steps > 0:
		return fmt.Sprintf("stepped %s, last by %v, %s ago", console.Counted(int(c.Steps), "time"), c.By.Round(time.Millisecond), console.Brief(now.Sub(c.Stepped)))
	}
	return "steady"
}

func fleaseMembersText(members []flease.MemberStatus, now time.Time) string {
	var rows [][]string
	for _, m := range members {
		heard, clock := console.Bad("never"), "-"
		if !m.Heard.IsZero() {
			heard, clock = console.Brief(now.Sub(m.Heard))+" ago", "right"
		}
		if !m.Twins.IsZero() {
			heard += ", " + console.Bad("from two processes "+console.Brief(now.Sub(m.Twins))+" ago")
		}
		if m.ClockOff != 0 {
			clock = console.Bad(fmt.Sprintf("off by %v", m.ClockOff.Round(time.Millisecond)))
		}
		rows = append(rows, []string{fmt.Sprint(m.ID), console.Shown(m.Addr), heard, clock})
	}
	return console.Table([]console.Column{console.Number("MEMBER"), console.Left("ADDRESS"), console.Left("HEARD"), console.Left("CLOCK")}, rows)
}

func fleaseStrangersText(strangers []flease.StrangerStatus, now time.Time) string {
	if len(strangers) == 0 {
		return ""
	}
	rows := console.Rows(strangers, func(m flease.StrangerStatus) []string {
		state := "votes"
		if m.Waits {
			state = "waits"
		}
		return []string{fmt.Sprint(m.ID), console.Brief(now.Sub(m.Heard)) + " ago", state}
	})
	return "\n" + console.Bad("Processes with other members, times or label:") + "\n" +
		console.Table([]console.Column{console.Number("STRANGER"), console.Left("HEARD"), console.Left("STATE")}, rows)
}

func fleaseLeasesText(s *fleasecontrol.Status, now time.Time) string {
	if len(s.Leases) == 0 {
		return ""
	}
	text := "\n" + console.Table([]console.Column{console.Left("LEASE"), console.Number("FENCE"), console.Left("ENDS")},
		console.Rows(s.Leases, func(l fleasecontrol.LeaseStatus) []string {
			return []string{console.Shown(l.Resource), cli.Decimal(l.Fence), "in " + console.Brief(l.Until.Sub(now))}
		}))
	if more := s.Held - len(s.Leases); more > 0 {
		text += fmt.Sprintf("... and %d more\n", more)
	}
	return text
}
