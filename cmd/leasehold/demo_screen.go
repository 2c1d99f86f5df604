package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/demo"
)

// demoScreen draws a demo for a terminal of a size. What does not fit in height
// is left off at the end of the events; a height of 0 is unknown.
func demoScreen(s *demo.Snapshot, width, height int, ending bool) string {
	parts := []string{
		demoTitle(s, ending), "",
		managersLine(s), dashboardLine(s), "",
		ownersText(s.Owners, width),
		requestsText(s), "",
		heading("What happened"),
	}
	text := strings.Join(parts, "\n") + "\n"
	room := max(1, height-strings.Count(text, "\n")-1)
	if height == 0 {
		room = 10
	}
	text += latest(s.Events, room)
	return lipgloss.NewStyle().MaxWidth(max(1, width)).Render(text)
}

func demoTitle(s *demo.Snapshot, ending bool) string {
	at := brief(s.Elapsed.Truncate(time.Second))
	switch {
	case ending:
		at = "ending"
	case s.Elapsed == 0:
		at = "starting"
	case s.Of > 0:
		at += " of " + brief(s.Of)
	}
	return fmt.Sprintf("%s  %s  (q ends it)", heading("Leasehold demo"), at)
}

func managersLine(s *demo.Snapshot) string {
	words := []string{"managers "}
	for _, m := range s.Managers {
		switch {
		case !m.Alive:
			words = append(words, bad("✗ "+m.Name))
		case m.Name == s.Leader:
			words = append(words, good("★ "+m.Name))
		default:
			words = append(words, "· "+m.Name)
		}
	}
	leads := bad("nobody leads")
	if s.Leader != "" {
		leads = fmt.Sprintf("%s leads, in term %d", s.Leader, s.Term)
	}
	return strings.Join(words, "  ") + "    " + leads
}

func dashboardLine(s *demo.Snapshot) string {
	if s.Dashboard == "" {
		return "dashboard  when a manager lives"
	}
	return "dashboard  " + s.Dashboard
}

// ownersText has a bar for each owner's share of the keys.
func ownersText(owners []demo.Participant, width int) string {
	most, name := 0.0, 0
	for _, o := range owners {
		most, name = max(most, o.Share), max(name, len(o.Name))
	}
	room := min(mostBar, width-name-20)
	var out strings.Builder
	for _, o := range owners {
		style, mark := lipgloss.NewStyle().Foreground(lipgloss.Cyan), " "
		if !o.Alive {
			style, mark = lipgloss.NewStyle().Foreground(lipgloss.Red), "✗"
		}
		bar := ""
		if most > 0 && room >= leastBar {
			bar = style.Render(strings.Repeat("█", int(o.Share/most*float64(room)+0.5)))
		}
		fmt.Fprintf(&out, "%s %-*s  %5.1f %%  %s\n", mark, name, o.Name, 100*o.Share, bar)
	}
	return out.String()
}

func requestsText(s *demo.Snapshot) string {
	r := &s.Report
	return strings.TrimSuffix(facts([]entry{
		{"requests", fmt.Sprintf("%.0f/s, half within %s, 99 %% within %s", s.PerSecond, millisText(s.Median), millisText(s.Slow))},
		{"so far", fmt.Sprintf("%s, %s, %s refused by a server that was not the owner",
			counted(int(r.Requests), "request"), counted(int(r.Failures), "failure"), grouped(r.Misroutes))},
		troubleLine(r),
		{"losses", fmt.Sprintf("%s told to users%s; %s set again; %s",
			counted(int(r.Losses), "lost range"), causesText(r.LossesFor), statusesText(r.Republished), silentText(r.SilentLosses))},
		{"ownership", ownershipText(r)},
	}), "\n")
}

// troubleLine is what was done to the processes.
func troubleLine(r *demo.Report) entry {
	if r.Rolling {
		return entry{"restarted", fmt.Sprintf("%s, in %s; a key that moves has no answer for %.0f ms in half of the cases, %.0f ms in 99 %%",
			counted(r.Restarts, "owner"), counted(r.Rounds, "whole round"), r.Unavailable.Median, r.Unavailable.P99)}
	}
	return entry{"killed", fmt.Sprintf("%s (failover %s), %s; %d stopped for a while, %d restarted",
		counted(r.LeadersKilled, "leader"), failoversText(lastFew(r.FailoverMillis)), counted(r.OwnersKilled, "owner"),
		r.OwnersStopped, r.Restarts)}
}

func millisText(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// lastFew keeps a line short when a demo goes on for long.
func lastFew(millis []int64) []int64 {
	const few = 5
	return millis[max(0, len(millis)-few):]
}

// latest is the last of the events, newest last.
func latest(events []demo.Event, room int) string {
	var out strings.Builder
	for _, e := range events[max(0, len(events)-room):] {
		out.WriteString(eventLine(e) + "\n")
	}
	return out.String()
}
