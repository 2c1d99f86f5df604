package balance

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

const about = "The balance of load over owners, and the keys that move for it. Simulated offline in rounds of 10 s: a policy receives what owners\n" +
	"would count and is judged by the true load, with the key popularity of PRS 7.3 (Zipf, alpha 0.8). Ours is `balanced`; `adaptive`\n" +
	"is the rule of the papers; `consistent` is consistent hashing with 64 points per owner;\n" +
	"[buraksezer/consistent](https://github.com/buraksezer/consistent) bounds the partitions per owner (64 each, factor 1.25).\n" +
	"`balanced` and `adaptive` may move 9 % of all keys per minute; the others have no limit. \"Over the best\" compares with the mean or,\n" +
	"if larger, with the owner's hottest key. Numbers are medians of the seeds with lowest and highest; the same seeds give the same\n" +
	"numbers anywhere."

// over returns the summary of a number of each seed.
func (t trial) over(of func([]policylab.Sample) float64) report.Summary {
	return report.SummariseOf(t.seeds, of)
}

func firstOverMean(all []policylab.Sample) float64 { return all[0].MaxOverMean }
func lastOverMean(all []policylab.Sample) float64  { return all[len(all)-1].MaxOverMean }
func lastOverBest(all []policylab.Sample) float64  { return all[len(all)-1].MaxOverUnavoidable }
func lastRanges(all []policylab.Sample) float64    { return float64(all[len(all)-1].Ranges) }

// movedPercent returns the moved keys in percent of all keys.
func movedPercent(all []policylab.Sample) float64 {
	sum := 0.0
	for _, s := range all {
		sum += s.Moved
	}
	return 100 * sum
}

// latePercent returns the moved keys per round of the last five minutes.
func latePercent(all []policylab.Sample) float64 {
	const late = 5 * minute
	return movedPercent(all[len(all)-late:]) / late
}

// cellText formats a summary with a number of digits.
func cellText(s report.Summary, digits int) string {
	text := func(x float64) string { return fmt.Sprintf("%.*f", digits, x) }
	if text(s.Low) == text(s.High) {
		return text(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", text(s.Median), text(s.Low), text(s.High))
}

func conclude(r *report.Result, s scenario, trials []trial) {
	t := report.NewTable("", "policy", "highest load over the mean, at first", "at last", "over the best, at last", "keys moved, %", "in a late round, %", "ranges")
	for _, x := range trials {
		t.Add(x.name, cellText(x.over(firstOverMean), 2), cellText(x.over(lastOverMean), 2), cellText(x.over(lastOverBest), 2),
			cellText(x.over(movedPercent), 2), cellText(x.over(latePercent), 3), int(x.over(lastRanges).Median))
	}
	r.Add(s.title, s.text, t)
	of := report.ByName(trials, func(t trial) string { return t.name })
	switch s.name {
	case zipfPart:
		concludeZipf(r, of)
	case leavePart, joinPart:
		ours, plain := of[nameBalanced], of[namePlain]
		moved, least := ours.over(movedPercent).Median, plain.over(movedPercent).Median
		r.Less("moved-when-"+s.name, moved, "%", namePlain, least)
		if moved > least {
			r.Lose("%s: plain consistent hashing moves %v %% of all keys, and we move %v %%: it moves only what it must, "+
				"and its highest load is %v times the mean afterwards, ours is %v.",
				s.title, least, moved, plain.over(lastOverMean).Median, ours.over(lastOverMean).Median)
		}
	}
}

// mostOverMean is the goal: at most the usual factor of bounded loads.
const mostOverMean = 1.2

func concludeZipf(r *report.Result, of map[string]trial) {
	ours := of[nameBalanced]
	even, moved := ours.over(lastOverMean).Median, ours.over(movedPercent).Median
	for _, peer := range []string{namePlain, nameLibrary} {
		r.Less("highest-load", even, "times the mean", peer, of[peer].over(lastOverMean).Median)
	}
	r.Less("keys-moved", moved, "%", nameAdaptive, of[nameAdaptive].over(movedPercent).Median)
	r.Want(fmt.Sprintf("Zipf, 250 owners: the highest load at most %v times the mean", mostOverMean), even, "", even <= mostOverMean)
	late := ours.over(latePercent).High
	r.Want("no move in the last five minutes", late, "% in a round", late == 0)
	r.Lose("plain consistent hashing and buraksezer/consistent move no key when loads change, and we move %v %%. "+
		"They ignore loads: their highest load is %v and %v times the mean, and ours %v.",
		moved, of[namePlain].over(lastOverMean).Median, of[nameLibrary].over(lastOverMean).Median, even)
}
