package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/console"

	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/server/demo"
)

// screen draws a demo for a terminal. What does not fit in height is cut from the events; a
// height of 0 is unknown.
func screen(s *demo.Snapshot, width, height int, ending bool) string {
	text := strings.Join([]string{
		title(s, ending), "",
		managersLine(s), dashboardLine(s), "",
		ownersText(s.Owners, width),
		requestsText(s), console.Heading("What happened"),
	}, "\n") + "\n"
	room := max(1, height-strings.Count(text, "\n")-1)
	if height == 0 {
		room = 10
	}
	for _, e := range s.Events[max(0, len(s.Events)-room):] {
		text += eventLine(e)
	}
	return lipgloss.NewStyle().MaxWidth(max(1, width)).Render(text)
}

func title(s *demo.Snapshot, ending bool) string {
	at := s.Elapsed.Truncate(time.Second).String()
	switch {
	case ending:
		at = "ending"
	case s.Elapsed == 0:
		at = "starting"
	case s.Of > 0:
		at += " of " + s.Of.String()
	}
	return fmt.Sprintf("%s  %s  (q ends it)", console.Heading("Leasehold demo"), at)
}

func managersLine(s *demo.Snapshot) string {
	words := []string{"managers "}
	for _, m := range s.Managers {
		switch {
		case !m.Alive:
			words = append(words, console.Bad("✗ "+m.Name))
		case m.Name == s.Leader:
			words = append(words, console.Good("★ "+m.Name))
		default:
			words = append(words, "· "+m.Name)
		}
	}
	leads := console.Bad("no leader")
	if s.Leader != "" {
		leads = fmt.Sprintf("%s leads, in term %d", s.Leader, s.Term)
	}
	return strings.Join(words, "  ") + "    " + leads
}

func dashboardLine(s *demo.Snapshot) string {
	if s.Dashboard == "" {
		return "dashboard  none while no manager runs"
	}
	return "dashboard  " + s.Dashboard
}

// Widths of a bar. A narrower one shows nothing.
const (
	minBar = 8
	maxBar = 40
)

// ownersText has a bar for each owner's share of the keys.
func ownersText(owners []demo.Participant, width int) string {
	most, name := 0.0, 0
	for _, o := range owners {
		most, name = max(most, o.Share), max(name, len(o.Name))
	}
	room := min(maxBar, width-name-20)
	var out strings.Builder
	for _, o := range owners {
		style, mark := lipgloss.NewStyle().Foreground(lipgloss.Cyan), " "
		if !o.Alive {
			style, mark = lipgloss.NewStyle().Foreground(lipgloss.Red), "✗"
		}
		bar := ""
		if most > 0 && room >= minBar {
			bar = style.Render(strings.Repeat("█", int(o.Share/most*float64(room)+0.5)))
		}
		fmt.Fprintf(&out, "%s %-*s  %5.1f %%  %s\n", mark, name, o.Name, 100*o.Share, bar)
	}
	return out.String()
}

func requestsText(s *demo.Snapshot) string {
	r := &s.Report
	const few = 5 // failovers, which keep the line short in a long demo
	trouble := console.Entry{"killed", fmt.Sprintf("%s (failover %s), %s; %d stopped for a while, %d restarted",
		count(r.LeadersKilled, "leader"), failoversText(r.FailoverMillis[max(0, len(r.FailoverMillis)-few):]), count(r.OwnersKilled, "owner"), r.OwnersStopped, r.Restarts)}
	if r.Rolling {
		trouble = console.Entry{"restarted", fmt.Sprintf("%s, in %s; a key that moves has no answer for %.0f ms in half of the cases, %.0f ms in 99 %%",
			count(r.Restarts, "owner"), count(r.Rounds, "whole round"), r.Unavailable.Median, r.Unavailable.P99)}
	}
	return console.Facts([]console.Entry{
		{"requests", fmt.Sprintf("%.0f/s, half within %.1f ms, 99 %% within %.1f ms", s.PerSecond, s.Median.Seconds()*1000, s.Slow.Seconds()*1000)},
		{"so far", fmt.Sprintf("%s, %s, %s refused by a server that was not the owner",
			count(r.Requests, "request"), count(r.Failures, "failure"), grouped(r.Misroutes))},
		trouble,
		{"losses", fmt.Sprintf("%s notified to users%s; %s set again; %s",
			count(r.Losses, "lost range"), causesText(r.LossesFor), count(r.Republished, "status"), zero(r.SilentLosses, grouped(r.SilentLosses)+" silent"))},
		{"ownership", ownershipText(r)},
	})
}
