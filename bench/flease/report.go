package main

import (
	"fmt"
	"strings"
)

// A report is all that a run found out. Parts that were not asked for are empty.
type report struct {
	Command string     `json:"command"` // that found it out
	Machine machine    `json:"machine"`
	Contest []standing `json:"contest,omitempty"`
	Batches []point    `json:"batches,omitempty"`
	Disk    []strain   `json:"disk,omitempty"`
	Writer  *load      `json:"diskWriter,omitempty"`
	Groups  []point    `json:"groups,omitempty"`
	Goals   []verdict  `json:"goals,omitempty"`
	Skipped []string   `json:"skipped,omitempty"` // who did not take part, and why
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
func (r *report) tables() []table {
	var all []table
	for _, t := range []table{r.contestTable(), r.batchTable(), r.diskTable(), r.groupTable(), r.goalTable(), r.machineTable()} {
		if len(t.rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (r *report) contestTable() table {
	t := table{part: partContest, title: "Acquisitions per second, 3 processes on one computer, batches of 10,000",
		header: []string{"", "leases/s", "slowest turn", "fastest", "CPU us per lease", "flease is faster by", "an acquisition is"}}
	flease, _ := r.rate(nameFlease)
	for _, s := range r.Contest {
		times := ""
		if s.Rate.Median > 0 && s.Name != nameFlease {
			times = fmt.Sprintf("%.3g", flease.Median/s.Rate.Median)
		}
		t.add(s.Name, thousands(s.Rate.Median), thousands(s.Rate.Low), thousands(s.Rate.High), fmt.Sprintf("%.3g", s.Rate.Effort), times, s.Acquire)
	}
	if len(t.rows) > 0 {
		t.add("paper's flease", thousands(paperFlease), "", "", "", "", fmt.Sprintf("on %d machines together, groups of 3", paperMachines))
		t.add("paper's ZooKeeper", thousands(paperZooKeeper), "", "", "", "", "the most that 3 servers did, no synchronous writes")
	}
	return t
}

func (r *report) batchTable() table {
	t := table{part: partBatches, title: "Figure 3: leases per second by size of a batch", header: []string{"batch"}}
	rows := make(map[int][]string)
	for _, p := range r.Batches {
		if len(t.header) == 1 || t.header[len(t.header)-1] != p.Name {
			t.header = append(t.header, p.Name)
		}
		rows[p.Size] = append(rows[p.Size], thousands(p.Rate.Median))
	}
	for _, size := range batchSizes() {
		if cells := rows[size]; len(cells) > 0 {
			t.add(append([]string{thousands(float64(size))}, cells...)...)
		}
	}
	return t
}

func (r *report) diskTable() table {
	t := table{part: partDisk, title: "Figure 4: leases per second while another process keeps the disk busy",
		header: []string{"", "idle disk", "busy disk", "change"}}
	for _, s := range r.Disk {
		t.add(s.Name, thousands(s.Idle.Median), thousands(s.Busy.Median), percent(s.Change))
	}
	if w := r.Writer; w != nil && len(t.rows) > 0 {
		t.add("(the writer)", "", fmt.Sprintf("%.0f MB/s, %.0f fsyncs/s", w.BytesPerSecond/1e6, w.SyncsPerSecond), fmt.Sprintf("%.2f CPUs", w.CPUs))
	}
	return t
}

func (r *report) groupTable() table {
	t := table{part: partGroups, title: "Figure 5: leases per second by size of a group, 15 processes, batches of 10,000",
		header: []string{"group", "per process", "all together", "slowest turn", "fastest", "CPU us per lease"}}
	processes := float64(groupSizes()[len(groupSizes())-1])
	for _, p := range r.Groups {
		t.add(fmt.Sprint(p.Size), thousands(p.Rate.Median/processes), thousands(p.Rate.Median), thousands(p.Rate.Low), thousands(p.Rate.High), fmt.Sprintf("%.3g", p.Rate.Effort))
	}
	return t
}

func (r *report) goalTable() table {
	t := table{part: partGoals, title: "What we want", header: []string{"goal", "have", ""}}
	for _, v := range r.Goals {
		met := "yes"
		if !v.Met {
			met = "NO"
		}
		t.add(v.Want, v.Have, met)
	}
	for _, s := range r.Skipped {
		t.add("SKIPPED "+s, "", "")
	}
	return t
}

func (r *report) machineTable() table {
	t := table{part: partMachine, title: "Measured on", header: []string{"", ""}}
	m := r.Machine
	t.add("processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores))
	t.add("system", fmt.Sprintf("%s, data on %s", m.System, m.Files))
	t.add("versions", m.versions())
	t.add("load before", fmt.Sprintf("%.1f", m.Load))
	return t
}
