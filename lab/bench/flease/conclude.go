package flease

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// The maxima in the paper's text (section IV-A), over all machines, on a cluster of
// 2010. The paper has no numbers for its figures.
const (
	paperFlease    = 51_029 // 30 machines, 10,000 leases per batch
	paperZooKeeper = 7_336  // three servers, 30 machines as clients, no synchronous disk writes
)

// The goals.
const (
	leastRate  = 200_000 // leases per second, in batches of 10,000
	leastRatio = 20      // times etcd
	leastFlat  = 0.75    // the slowest size of a batch, of the fastest
	soughtRate = 500_000 // stated in the goal, not checked
)

func acquisition(name string) string {
	return map[string]string{
		nameFlease:     "a lease agreed upon by 2 of 3 processes, AcquireAll",
		nameSealed:     "the same, packets encrypted and authenticated",
		nameEtcd:       "a lease granted, a key put if it is absent; UnsafeNoFsync",
		nameEtcdClient: "a key put if it is absent, under the client's one lease; UnsafeNoFsync",
		nameEtcdSync:   "a lease granted, a key put if it is absent",
	}[name]
}

func concludeContest(r *report.Result, points []point) {
	t := report.NewTable("Acquisitions per second, 3 processes on one computer, batches of 10,000",
		"", "leases/s", "slowest turn", "fastest", "CPU us per lease", "flease is faster by", "an acquisition is")
	ours, best := points[0].Rate.Median, point{}
	for _, p := range points {
		times := ""
		if p.Name != nameFlease {
			times = report.Number(ours / p.Rate.Median)
			r.More("acquire", ours, "leases/s", p.Name, p.Rate.Median)
		}
		t.Add(p.Name, p.Rate.Summary, p.Rate.Effort, times, acquisition(p.Name))
		if strings.HasPrefix(p.Name, nameEtcd) && p.Rate.Median > best.Rate.Median {
			best = p
		}
	}
	t.Add("paper's flease", paperFlease, "", "", "", "", "on 30 machines together, groups of 3")
	t.Add("paper's ZooKeeper", paperZooKeeper, "", "", "", "", "the most that 3 servers did, no synchronous writes")
	r.Add("", "", t)
	r.More("acquire", ours, "leases/s", "the paper's, on 30 machines", paperFlease)
	r.Want(fmt.Sprintf("flease: at least %s leases/s (we aim at %s)", report.Thousands(leastRate), report.Thousands(soughtRate)),
		ours, "", ours >= leastRate)
	ratio := ours / best.Rate.Median
	r.Want(fmt.Sprintf("flease: at least %d times the fastest use of etcd (%s)", leastRatio, best.Name), ratio, "", ratio >= leastRatio)
}

func concludeBatches(r *report.Result, points []point) {
	t := report.NewTable("Figure 3: leases per second by size of a batch", "batch", nameFlease, nameEtcd, nameEtcdClient)
	var rates []float64
	for i := 0; i < len(points); i += 3 {
		t.Add(points[i].Size, points[i].Rate.Median, points[i+1].Rate.Median, points[i+2].Rate.Median)
		rates = append(rates, points[i].Rate.Median)
	}
	r.Add("", "", t)
	s := report.Summarise(rates)
	r.Want(fmt.Sprintf("flease: the slowest size of batches at least %v of the fastest", leastFlat), s.Low/s.High, "", s.Low/s.High >= leastFlat)
}
