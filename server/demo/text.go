package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/console"
)

// Text formats the result.
func (r *Report) Text() string {
	name, outage, kills := "Demo", r.OutageSeconds > 0, false
	switch {
	case r.Rolling:
		name = "Rolling restart"
	case outage:
		name = "Outage"
	default:
		kills = true
	}
	return console.Heading(name) + "\n" + console.Facts([]console.Entry{
		{"requests", fmt.Sprintf("%s in %.1f s, %s at the first try; half within %.1f ms, 99 %% within %.1f ms of when they were due",
			grouped(r.Requests), r.Seconds, console.Percent(r.FirstTry), r.MedianMillis, r.P99Millis)},
		{"availability", fmt.Sprintf("%s succeeded within 1 s, %s in the end: %s, %s, %s refused by a server that was not the owner",
			console.Percent(r.Availability), console.Percent(r.Eventually), count(r.Failures, "failure"), count(r.Retries, "retry"), grouped(r.Misroutes))},
		console.If(kills, "killed", fmt.Sprintf("%s, %s; %s stopped for longer than its leases last; %s restarted, for which %s lost",
			count(r.LeadersKilled, "leader"), count(r.OwnersKilled, "owner"), count(r.OwnersStopped, "owner"), count(r.Restarts, "owner"), count(r.ByRestart, "range"))),
		console.If(len(r.RecoveryMillis) > 0, "recovery", r.recoveryText()),
		console.If(kills, "failover", fmt.Sprintf("%s; %s lost in it", failoversText(r.FailoverMillis), count(r.LeasesLostInFailover, "lease"))),
		console.If(r.Rolling, "restarted", fmt.Sprintf("%s, in %s; %s moved, which makes each key move %.1f times",
			count(r.Restarts, "owner"), count(r.Rounds, "whole round"), count(r.MovedRanges, "range"), r.MovedShare)),
		console.If(r.Rolling, "unavailable", fmt.Sprintf("a key that moved: half within %.1f ms, 99 %% within %.1f ms, %.1f ms at most; seen %s times on %s",
			r.Unavailable.Median, r.Unavailable.P99, r.Unavailable.Max, grouped(r.Unavailable.Times), count(r.Unavailable.Keys, "key"))),
		console.If(outage, "outage", fmt.Sprintf("no manager ran for %.1f s; %s resumed with the same generation, %s",
			r.OutageSeconds, count(r.ResumedRanges, "range"), zero(r.ByOutage, "lost"))),
		console.If(outage, "unavailable", fmt.Sprintf("all keys had an answer %.2f s after a manager led again", r.AfterReturn)),
		console.If(!kills, "keys", fmt.Sprintf("%s of %s; %s looked through at the end", grouped(r.Keys), count(r.ValueSize, "byte"), grouped(r.LookedUp))),
		console.If(r.TLS, "security", fmt.Sprintf("TLS and an access policy everywhere; %s renewed on the way, for which %s lost",
			count(r.Renewed, "certificate"), count(r.LostToRenewal, "lease"))),
		{"losses", fmt.Sprintf("users were notified of %s%s, and set %s again; %s",
			count(r.Losses, "lost range"), causesText(r.LossesFor), count(r.Republished, "status"), zero(r.SilentLosses, "silent"))},
		{"ownership", fmt.Sprintf("%s in %s and %s", zero(r.DualOwnership, "dual ownerships"), count(r.Tenures, "tenure"), count(r.Checked, "operation"))},
		console.If(r.Kept != "", "kept", r.Kept),
	})
}

func grouped[N int | uint64](n N) string { return console.Grouped(uint64(n)) }

func count[N int | uint64](n N, noun string) string { return console.Counted(int(n), noun) }

// zero formats a number, which should be zero.
func zero(n uint64, what string) string {
	text := grouped(n) + " " + what
	if n == 0 {
		return console.Good(text)
	}
	return console.Bad(text)
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

func (r *Report) recoveryText() string {
	supervised := "with"
	if !r.Supervised {
		supervised = "without"
	}
	return fmt.Sprintf("the keys of a killed owner had the next one after %s ms (median), %s ms at most, %s supervisors",
		grouped(uint64(r.RecoveryMedianMillis)), grouped(uint64(r.RecoveryMaxMillis)), supervised)
}
