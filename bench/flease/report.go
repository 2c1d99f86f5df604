package main

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A report is all that a run found out. Parts that were not asked for are empty.
type report struct {
	Command string // that found it out
	Machine machine
	Contest []standing
	Batches []point
	Disk    []strain
	Writer  *load
	Groups  []point
	Goals   []kit.Goal
	Skipped []string // who did not take part, and why
}

// What the paper's text says (section IV-A): the most of each, over all machines,
// on a cluster of 2010. Its figures have no numbers in the text.
const (
	paperFlease    = 51_029 // 30 machines, 10,000 leases per batch
	paperMachines  = 30
	paperZooKeeper = 7_336 // three servers, 30 machines as clients, no synchronous disk writes
)

// sideBySide reports whether lock services took part.
func (r *report) sideBySide() bool { return len(r.Contest)+len(r.Batches)+len(r.Disk) > 0 }

// rate returns the summary of a contestant, and whether it took part.
func (r *report) rate(name string) (summary, bool) {
	for _, s := range r.Contest {
		if s.Name == name {
			return s.Rate, s.Rate.Median > 0
		}
	}
	return summary{}, false
}

// best returns the fastest of the lock services.
func (r *report) best() (standing, bool) {
	var best standing
	for _, s := range r.Contest {
		isService := strings.HasPrefix(s.Name, nameEtcd) || strings.HasPrefix(s.Name, nameZooKeeper)
		if isService && s.Rate.Median > best.Rate.Median {
			best = s
		}
	}
	return best, best.Rate.Median > 0
}

// A part is a table under the name of the part of the report that it is.
type part struct {
	name string
	*kit.Table
}

// The parts of a report, which are the sections of its page, too.
const (
	partContest = "contest"
	partBatches = "batches"
	partDisk    = "disk"
	partGroups  = "groups"
	partGoals   = "goals"
	partMachine = "machine"
)

// tables returns what there is to print, by part, in their order.
func (r *report) tables() []part {
	var all []part
	for _, t := range []part{r.contestTable(), r.batchTable(), r.diskTable(), r.groupTable(), r.goalTable(), r.machineTable()} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (r *report) contestTable() part {
	t := part{partContest, kit.NewTable("Acquisitions per second, 3 processes on one computer, batches of 10,000", "", "leases/s", "slowest turn", "fastest", "CPU us per lease", "flease is faster by", "an acquisition is")}
	flease, _ := r.rate(nameFlease)
	for _, s := range r.Contest {
		times := ""
		if s.Rate.Median > 0 && s.Name != nameFlease {
			times = fmt.Sprintf("%.3g", flease.Median/s.Rate.Median)
		}
		t.Add(s.Name, kit.Thousands(s.Rate.Median), kit.Thousands(s.Rate.Low), kit.Thousands(s.Rate.High), fmt.Sprintf("%.3g", s.Rate.Effort), times, s.Acquire)
	}
	if len(t.Rows) > 0 {
		t.Add("paper's flease", kit.Thousands(paperFlease), "", "", "", "", fmt.Sprintf("on %d machines together, groups of 3", paperMachines))
		t.Add("paper's ZooKeeper", kit.Thousands(paperZooKeeper), "", "", "", "", "the most that 3 servers did, no synchronous writes")
	}
	return t
}

func (r *report) batchTable() part {
	t := part{partBatches, kit.NewTable("Figure 3: leases per second by size of a batch", "batch")}
	rows := make(map[int][]string)
	for _, p := range r.Batches {
		if len(t.Header) == 1 || t.Header[len(t.Header)-1] != p.Name {
			t.Header = append(t.Header, p.Name)
		}
		rows[p.Size] = append(rows[p.Size], kit.Thousands(p.Rate.Median))
	}
	for _, size := range batchSizes() {
		if cells := rows[size]; len(cells) > 0 {
			t.Add(append([]string{kit.Thousands(float64(size))}, cells...)...)
		}
	}
	return t
}

func (r *report) diskTable() part {
	t := part{partDisk, kit.NewTable("Figure 4: leases per second while another process keeps the disk busy", "", "idle disk", "busy disk", "change")}
	for _, s := range r.Disk {
		t.Add(s.Name, kit.Thousands(s.Idle.Median), kit.Thousands(s.Busy.Median), kit.Percent(s.Change))
	}
	if w := r.Writer; w != nil && len(t.Rows) > 0 {
		t.Add("(the writer)", "", fmt.Sprintf("%.0f MB/s, %.0f fsyncs/s", w.BytesPerSecond/1e6, w.SyncsPerSecond), fmt.Sprintf("%.2f CPUs", w.CPUs))
	}
	return t
}

func (r *report) groupTable() part {
	t := part{partGroups, kit.NewTable("Figure 5: leases per second by size of a group, 15 processes, batches of 10,000", "group", "per process", "all together", "slowest turn", "fastest", "CPU us per lease")}
	processes := float64(groupSizes()[len(groupSizes())-1])
	for _, p := range r.Groups {
		t.Add(fmt.Sprint(p.Size), kit.Thousands(p.Rate.Median/processes), kit.Thousands(p.Rate.Median), kit.Thousands(p.Rate.Low), kit.Thousands(p.Rate.High), fmt.Sprintf("%.3g", p.Rate.Effort))
	}
	return t
}

func (r *report) goalTable() part {
	t := part{partGoals, kit.NewTable("What we want", "goal", "have", "")}
	for _, v := range r.Goals {
		met := "yes"
		if !v.Met {
			met = "NO"
		}
		t.Add(v.Want, v.Have, met)
	}
	for _, s := range r.Skipped {
		t.Add("SKIPPED "+s, "", "")
	}
	return t
}

func (r *report) machineTable() part {
	t := part{partMachine, kit.NewTable("Measured on", "", "")}
	m := r.Machine
	t.Add("processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores))
	t.Add("system", fmt.Sprintf("%s, data on %s", m.System, m.Files))
	t.Add("versions", strings.Join(append([]string{m.Go}, m.versions()...), ", "))
	t.Add("load before", fmt.Sprintf("%.1f", m.Load))
	return t
}

// tell adds what the report has to a result. The page of the benchmark has the
// contest, and the figures that flease.md has.
func (r *report) tell(to *kit.Result) {
	to.Goals, to.Skipped, to.Versions = r.Goals, r.Skipped, append(to.Versions, r.Machine.versions()...)
	for _, t := range r.tables() {
		if t.name != partGoals && t.name != partMachine {
			to.Add(kit.Section{Table: t.Table})
		}
	}
	for _, f := range []struct{ file, shows string }{
		{"figure-3.svg", "figure 3: leases per second by size of a batch"},
		{"figure-4.svg", "figure 4: what is left of each one's leases per second with a busy disk"},
		{"figure-5.svg", "figure 5: leases per second and process by size of a group"},
	} {
		to.Add(kit.Section{Plot: "flease/" + f.file, Shows: f.shows})
	}
	flease, ok := r.rate(nameFlease)
	if !ok {
		return
	}
	for _, s := range r.Contest {
		if s.Name != nameFlease {
			to.More("acquire", flease.Median, "leases/s", s.Name, s.Rate.Median)
		}
	}
	to.More("acquire", flease.Median, "leases/s", "the paper's, on 30 machines", paperFlease)
	to.Losses = append(to.Losses, "to datagrams alone: a lease is looked up, compared and stored at each of the three, where a datagram is only carried. "+
		"What lock services do that Flease does not is at the end of [flease.md](flease.md#what-we-lose-and-why).")
}
