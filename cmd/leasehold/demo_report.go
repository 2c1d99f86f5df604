package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/demo"
)

// demoText is what came of a demo, for people.
func demoText(r *demo.Report) string {
	lines := []entry{
		{"requests", fmt.Sprintf("%s in %.1f s, %s at the first try; half within %.1f ms, 99 %% within %.1f ms of when they were due",
			grouped(r.Requests), r.Seconds, percent(r.FirstTry), r.MedianMillis, r.P99Millis)},
		{"availability", fmt.Sprintf("%s succeeded within 1 s, %s in the end: %s, %s, %s refused by a server that was not the owner",
			percent(r.Availability), percent(r.Eventually), counted(int(r.Failures), "failure"), retriesText(r.Retries), grouped(r.Misroutes))},
	}
	title := "Demo"
	switch {
	case r.Rolling:
		title = "Rolling restart"
		lines = append(lines, rollingFacts(r)...)
	case r.OutageSeconds > 0:
		title = "Outage"
		lines = append(lines, outageFacts(r)...)
	default:
		lines = append(lines,
			entry{"killed", killedText(r)},
			entry{"failover", fmt.Sprintf("%s; %s", failoversText(r.FailoverMillis), counted(r.LeasesLostInFailover, "lease")+" lost in it")})
	}
	if r.TLS {
		lines = append(lines, entry{"security", fmt.Sprintf("TLS and an access policy everywhere; %s renewed on the way, for which %s lost",
			counted(r.Renewed, "certificate"), counted(r.LostToRenewal, "lease"))})
	}
	lines = append(lines,
		entry{"losses", lossesText(r)},
		entry{"ownership", ownershipText(r)})
	if r.Kept != "" {
		lines = append(lines, entry{"kept", r.Kept})
	}
	return heading(title) + "\n" + facts(lines)
}

func killedText(r *demo.Report) string {
	text := fmt.Sprintf("%s, %s", counted(r.LeadersKilled, "leader"), counted(r.OwnersKilled, "owner"))
	if r.OwnersStopped > 0 {
		text += fmt.Sprintf("; %s stopped for longer than its leases last", counted(r.OwnersStopped, "owner"))
	}
	if r.Restarts > 0 {
		text += fmt.Sprintf("; %s restarted, for which %s lost", counted(r.Restarts, "owner"), counted(int(r.ByRestart), "range"))
	}
	return text
}

// outageFacts is what an outage of all managers is about.
func outageFacts(r *demo.Report) []entry {
	lost := grouped(r.ByOutage) + " lost"
	if r.ByOutage == 0 {
		lost = good(lost)
	} else {
		lost = bad(lost)
	}
	return []entry{
		{"outage", fmt.Sprintf("no manager ran for %.1f s; %s resumed with the same generation, %s", r.OutageSeconds, counted(r.ResumedRanges, "range"), lost)},
		{"unavailable", fmt.Sprintf("all keys had an answer %.2f s after a manager led again", r.AfterReturn)},
		{"keys", fmt.Sprintf("%s of %s; %s looked through at the end", grouped(uint64(r.Keys)), counted(r.ValueSize, "byte"), grouped(uint64(r.LookedUp)))},
	}
}

// rollingFacts is what a rolling restart is about.
func rollingFacts(r *demo.Report) []entry {
	return []entry{
		{"restarted", fmt.Sprintf("%s, in %s; %s moved, which makes each key move %.1f times",
			counted(r.Restarts, "owner"), counted(r.Rounds, "whole round"), counted(int(r.MovedRanges), "range"), r.MovedShare)},
		{"unavailable", unavailableText(&r.Unavailable)},
		{"keys", fmt.Sprintf("%s of %s; %s looked through at the end", grouped(uint64(r.Keys)), counted(r.ValueSize, "byte"), grouped(uint64(r.LookedUp)))},
	}
}

// unavailableText says for how long keys had no answer.
func unavailableText(u *demo.Unavailability) string {
	if u.Times == 0 {
		return "no key, as far as was noticed"
	}
	return fmt.Sprintf("a key that moved: half within %.1f ms, 99 %% within %.1f ms, %.1f ms at most; seen %s times on %s",
		u.Median, u.P99, u.Max, grouped(u.Times), counted(u.Keys, "key"))
}

func lossesText(r *demo.Report) string {
	return fmt.Sprintf("users were told of %s%s, and set %s again; %s",
		counted(int(r.Losses), "lost range"), causesText(r.LossesFor), statusesText(r.Republished), silentText(r.SilentLosses))
}

// ownershipText is the verdict on what the servers believed.
func ownershipText(r *demo.Report) string {
	return fmt.Sprintf("%s in %s and %s",
		dualText(r.DualOwnership), counted(int(r.Tenures), "tenure"), counted(int(r.Checked), "operation"))
}

func silentText(n uint64) string {
	text := grouped(n) + " silent"
	if n == 0 {
		return good(text)
	}
	return bad(text)
}

func retriesText(n uint64) string {
	if n == 1 {
		return "1 retry"
	}
	return grouped(n) + " retries"
}

func statusesText(n uint64) string {
	if n == 1 {
		return "1 status"
	}
	return grouped(n) + " statuses"
}

func failoversText(millis []int64) string {
	if len(millis) == 0 {
		return "none"
	}
	var out []string
	for _, m := range millis {
		out = append(out, fmt.Sprintf("%.1f s", float64(m)/1000))
	}
	return strings.Join(out, ", ")
}

func causesText(causes map[string]uint64) string {
	var out []string
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		out = append(out, fmt.Sprintf("%s %s", grouped(causes[cause]), cause))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}
