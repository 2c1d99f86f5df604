package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

// report adds a table, headlines, goals and losses.
func report(r *kit.Result, all []entry, turns [][]cast.Turn, fsync bool) {
	title := "Granted in a second, with fsync"
	if !fsync {
		title = "Granted in a second, without fsync"
	}
	t := kit.NewTable("", "", "granted/s", "low", "high", "processors, µs each")
	rates := make(map[string]float64)
	for i, e := range all {
		var each, efforts []float64
		for _, turn := range turns[i] {
			each, efforts = append(each, turn.Rate()), append(efforts, float64(turn.Effort())/float64(time.Microsecond))
		}
		s := kit.Summarise(each)
		rates[e.name] = s.Median
		t.Add(e.name, kit.Number(s.Median), kit.Number(s.Low), kit.Number(s.High), kit.Number(kit.Median(efforts)))
	}
	r.Add(kit.Section{Title: title, Table: t})
	for _, peer := range []string{nameEtcdLock, nameEtcdPut, nameEtcdMutex, nameZooKeeper} {
		theirs, ok := rates[peer]
		if !ok {
			continue
		}
		r.More("joins", rates[nameJoins], "1/s", peer, theirs)
		r.More("leases", rates[nameLeases], "1/s", peer, theirs)
		for _, ours := range []string{nameJoins, nameLeases} {
			why := whyLost(ours)
			if rates[ours] < theirs {
				r.Losses = append(r.Losses, fmt.Sprintf("to %s, %s/s against %s/s of %s. What differs: %s.", peer, kit.Thousands(theirs), kit.Thousands(rates[ours]), ours, why))
			}
		}
	}
	r.Want("more leases in a second than etcd grants", rates[nameLeases], "1/s", rates[nameLeases] > rates[nameEtcdLock])
}

// whyLost says what ours does in its turn that others do not. How much of the
// difference that is, nobody has measured.
func whyLost(ours string) string {
	if ours == nameJoins {
		return "each owner opens a connection of its own within the turn, where clients of the others have theirs"
	}
	return "a manager waits a quarter of a second for more owners before it grants"
}
