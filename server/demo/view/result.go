package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/console"

	"github.com/leasehold-dev/leasehold/server/demo"
)

func grouped[N int | uint64](n N) string { return console.Grouped(uint64(n)) }

func count[N int | uint64](n N, noun string) string { return console.Counted(int(n), noun) }

// zero shows whether a number is zero, as it should be.
func zero(n uint64, text string) string {
	if n == 0 {
		return console.Good(text)
	}
	return console.Bad(text)
}

// Text is the result of a demo.
func Text(r *demo.Report) string {
	all := []console.Entry{
		{"requests", fmt.Sprintf("%s in %.1f s, %s at the first try; half within %.1f ms, 99 %% within %.1f ms of when they were due",
			grouped(r.Requests), r.Seconds, console.Percent(r.FirstTry), r.MedianMillis, r.P99Millis)},
		{"availability", fmt.Sprintf("%s succeeded within 1 s, %s in the end: %s, %s, %s refused by a server that was not the owner",
			console.Percent(r.Availability), console.Percent(r.Eventually), count(r.Failures, "failure"), count(r.Retries, "retry"), grouped(r.Misroutes))},
	}
	name := "Demo"
	switch {
	case r.Rolling:
		name = "Rolling restart"
		all = append(all, rollingFacts(r)...)
	case r.OutageSeconds > 0:
		name = "Outage"
		all = append(all, outageFacts(r)...)
	default:
		all = append(all,
			console.Entry{"killed", killedText(r)},
			console.Entry{"failover", fmt.Sprintf("%s; %s lost in it", failoversText(r.FailoverMillis), count(r.LeasesLostInFailover, "lease"))})
	}
	if r.TLS {
		all = append(all, console.Entry{"security", fmt.Sprintf("TLS and an access policy everywhere; %s renewed on the way, for which %s lost",
			count(r.Renewed, "certificate"), count(r.LostToRenewal, "lease"))})
	}
	all = append(all,
		console.Entry{"losses", fmt.Sprintf("users were notified of %s%s, and set %s again; %s",
			count(r.Losses, "lost range"), causesText(r.LossesFor), count(r.Republished, "status"), zero(r.SilentLosses, grouped(r.SilentLosses)+" silent"))},
		console.Entry{"ownership", ownershipText(r)})
	if r.Kept != "" {
		all = append(all, console.Entry{"kept", r.Kept})
	}
	return console.Heading(name) + "\n" + console.Facts(all)
}

func killedText(r *demo.Report) string {
	text := fmt.Sprintf("%s, %s", count(r.LeadersKilled, "leader"), count(r.OwnersKilled, "owner"))
	if r.OwnersStopped > 0 {
		text += fmt.Sprintf("; %s stopped for longer than its leases last", count(r.OwnersStopped, "owner"))
	}
	if r.Restarts > 0 {
		text += fmt.Sprintf("; %s restarted, for which %s lost", count(r.Restarts, "owner"), count(r.ByRestart, "range"))
	}
	return text
}

func outageFacts(r *demo.Report) []console.Entry {
	return []console.Entry{
		{"outage", fmt.Sprintf("no manager ran for %.1f s; %s resumed with the same generation, %s",
			r.OutageSeconds, count(r.ResumedRanges, "range"), zero(r.ByOutage, grouped(r.ByOutage)+" lost"))},
		{"unavailable", fmt.Sprintf("all keys had an answer %.2f s after a manager led again", r.AfterReturn)},
		keysFact(r),
	}
}

func rollingFacts(r *demo.Report) []console.Entry {
	u := &r.Unavailable
	unavailable := "no key, as far as was noticed"
	if u.Times > 0 {
		unavailable = fmt.Sprintf("a key that moved: half within %.1f ms, 99 %% within %.1f ms, %.1f ms at most; seen %s times on %s",
			u.Median, u.P99, u.Max, grouped(u.Times), count(u.Keys, "key"))
	}
	return []console.Entry{
		{"restarted", fmt.Sprintf("%s, in %s; %s moved, which makes each key move %.1f times",
			count(r.Restarts, "owner"), count(r.Rounds, "whole round"), count(r.MovedRanges, "range"), r.MovedShare)},
		{"unavailable", unavailable},
		keysFact(r),
	}
}

func keysFact(r *demo.Report) console.Entry {
	return console.Entry{"keys", fmt.Sprintf("%s of %s; %s looked through at the end", grouped(r.Keys), count(r.ValueSize, "byte"), grouped(r.LookedUp))}
}

func ownershipText(r *demo.Report) string {
	return fmt.Sprintf("%s in %s and %s", dualText(r), count(r.Tenures, "tenure"), count(r.Checked, "operation"))
}

func dualText(r *demo.Report) string {
	return zero(r.DualOwnership, count(r.DualOwnership, "dual ownership"))
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
		out = append(out, grouped(causes[cause])+" "+cause)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}
