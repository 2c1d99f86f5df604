package main

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

// What we want: as even as bounded loads promise to be with their usual factor,
// and quieter.
const mostOverMean = 1.2

func reportZipf(r *report.Result, trials []trial) {
	ours := find(trials, nameBalanced)
	even, moved := ours.over(lastOverMean).Median, ours.over(movedPercent).Median
	for _, peer := range []string{namePlain, nameLibrary, nameBounded} {
		r.Less("highest-load", even, "times the mean", peer, find(trials, peer).over(lastOverMean).Median)
	}
	for _, peer := range []string{nameAdaptive, nameBounded, nameTight} {
		r.Less("keys-moved", moved, "%", peer, find(trials, peer).over(movedPercent).Median)
	}
	r.Want(fmt.Sprintf("Zipf, 250 owners: the highest load at most %v times the mean", mostOverMean), even, "", even <= mostOverMean)
	r.Want("and nothing moves any more in the last five minutes", ours.over(latePercent).High, "% in a round", ours.over(latePercent).High == 0)
	r.Lose("plain consistent hashing and buraksezer/consistent move no key when loads change, and we move %s %%. "+
		"They do nothing about loads: their highest is %s and %s times the mean, and ours %s.", report.Number(moved),
		report.Number(find(trials, namePlain).over(lastOverMean).Median), report.Number(find(trials, nameLibrary).over(lastOverMean).Median), report.Number(even))
}

// An event is a change of the pool.
type event struct {
	name, title string
	from        int // the period in which it happens
}

func happenings() []event {
	return []event{
		{"one-leaves", "1 of 250 leaves", oneGoes},
		{"one-joins", "1 joins 249", oneComes},
		{"fifty-leave", "50 of 250 leave", rackGoes},
		{"fifty-join", "50 join 200", rackBack},
	}
}

// untilNext is how many periods there are until the next event.
const untilNext = 4 * minute

const membersText = "250 owners, a billion keys. One leaves and one joins; then a fifth leaves at once, and as many join, as the rack of PRS 7.2 does. Keys moved are those of the\n" +
	"four minutes that follow, in percent of all keys; one owner's fair share is 0.4 %, and that of fifty 20 %. The highest load over the mean is that of the first\n" +
	"round, when nobody knows yet what the keys cost that came, and that after four minutes."

// moved is how many keys move in the four minutes that follow.
func (e event) moved(r *policylab.Result) float64 { return movedBetween(r, e.from, e.from+untilNext) }

func (e event) atOnce(r *policylab.Result) float64 { return r.Samples[e.from].MaxOverMean }
func (e event) later(r *policylab.Result) float64  { return r.Samples[e.from+untilNext-1].MaxOverMean }

// comings is a table of what each event came to.
func comings(title string, trials []trial, cell func(trial, event) string) *report.Table {
	header := []string{"policy"}
	for _, e := range happenings() {
		header = append(header, e.title)
	}
	t := report.NewTable(title, header...)
	for _, x := range trials {
		row := []any{x.name}
		for _, e := range happenings() {
			row = append(row, cell(x, e))
		}
		t.Add(row...)
	}
	return t
}

func movedCell(x trial, e event) string { return said(x.over(e.moved), 2) }

func highestCell(x trial, e event) string {
	return fmt.Sprintf("%.2f, then %.2f", x.over(e.atOnce).Median, x.over(e.later).Median)
}

func reportMembers(r *report.Result, trials []trial) {
	ours, all := find(trials, nameBalanced), happenings()
	for _, e := range all[2:] {
		for _, peer := range []string{namePlain, nameBounded} {
			r.Less("moved-when-"+e.name, ours.over(e.moved).Median, "%", peer, find(trials, peer).over(e.moved).Median)
		}
	}
	for _, e := range all {
		if have, plain := ours.over(e.moved).Median, find(trials, namePlain).over(e.moved).Median; have > plain {
			r.Lose("plain consistent hashing moves %s %% of all keys when %s, and we move %s %%: "+
				"it moves none that it need not, and lets the highest load be %s times the mean afterwards, ours is %s.", report.Number(plain), e.title, report.Number(have),
				report.Number(find(trials, namePlain).over(e.later).Median), report.Number(ours.over(e.later).Median))
		}
	}
}
