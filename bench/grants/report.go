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
	c := comparison{r, rates}
	c.compare("joins", nameJoins, nameEtcdLock, nameEtcdPut, nameEtcdMutex, nameZooKeeper)
	c.compare("joins-connecting", nameNewcomers, nameEtcdNewcomers)
	c.compare("leases", nameLeases, nameEtcdLock, nameEtcdPut, nameEtcdMutex, nameZooKeeper)
	r.Want("as many joins in a second as etcd grants leases and puts keys", rates[nameJoins], "1/s", rates[nameJoins] >= rates[nameEtcdLock])
	r.Want("the same of those who connect first", rates[nameNewcomers], "1/s", rates[nameNewcomers] >= rates[nameEtcdNewcomers])
	r.Want("more leases in a second than etcd grants", rates[nameLeases], "1/s", rates[nameLeases] > rates[nameEtcdLock])
}

// A comparison makes headlines of rates, and tells what is lost.
type comparison struct {
	*kit.Result
	rates map[string]float64
}

// compare compares ours with peers, as far as they take part.
func (c comparison) compare(headline, ours string, peers ...string) {
	for _, peer := range peers {
		theirs, ok := c.rates[peer]
		if !ok {
			continue
		}
		c.More(headline, c.rates[ours], "1/s", peer, theirs)
		if c.rates[ours] < theirs {
			c.Losses = append(c.Losses, fmt.Sprintf("to %s, %s/s against %s/s of %s. What differs: %s.",
				peer, kit.Thousands(theirs), kit.Thousands(c.rates[ours]), ours, whatDiffers(ours)))
		}
	}
}

// whatDiffers says what ours does in its turn that others do not. How much of the
// difference that is, nobody has measured.
func whatDiffers(ours string) string {
	switch ours {
	case nameJoins:
		return "each owner is a session of its own that has to prove that it hears the manager, and renews; clients of the others have their session before, if any"
	case nameNewcomers:
		return "an owner has to prove that it hears the manager before it is granted anything"
	}
	return "owners connect and join within the turn"
}
