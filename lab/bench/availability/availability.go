// Package availability measures how long keys are unavailable after failures of a rack
// of servers, as in PRS's figure 9, a server with or without a supervisor, a host, the leader
// or the store's leader, and when a server is drained.
package availability

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
)

const about = "The time without service of a key. Three managers with embedded stores, servers with the owner library, and frontends that find a\n" +
	"server with the lookup library and retry until served; all are processes, with default times (leases of 10 s, TTL of 2 s). The\n" +
	"measure is the time of an operation until it is served. 128 frontends use one key each and repeat 5 ms after each answer, while a\n" +
	"server is stopped or dies, the leader dies, or the store's leader dies. Leases survive the leader, so callers should notice\n" +
	"nothing; the time without changes is measured by creating a namespace. A supervised server runs under \"leasehold run\". A host\n" +
	"stops: a server and its supervisor neither reply nor close a connection. A host's network is cut: the server is in a network namespace\n" +
	"of its own, and all packets are lost; it has managers with a TTL of 1 s. Frontends wait 0.5 s for a reply. Then PRS's figure 9: a rack of 50 of 250 servers is reset."

// The parts of the benchmark.
const (
	partEvents   = "events"
	partRack     = "rack"
	partFailover = "failover"
)

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "availability", Number: 5, Title: "Availability", About: about,
		Parts: []string{partEvents, partRack, partFailover}, QuickPart: partEvents,
		Rounds: 4, Quick: 1, Seconds: 390, QuickSeconds: 60, Run: run,
	}
}

// Roles returns the roles of the processes, for [proc.Play].
func Roles() map[string]proc.Role { return loadgen.Roles() }

// servers is the number of servers for single events, each in a process.
const servers = 4

func run(ctx context.Context, r *report.Run) error {
	if r.Wants(partEvents) || r.Wants(partRack) {
		if err := runSites(ctx, r); err != nil {
			return err
		}
	}
	if !r.Wants(partFailover) {
		return nil
	}
	return runFailovers(ctx, r)
}

// runSites measures failures of servers and managers in one group.
func runSites(ctx context.Context, r *report.Run) error {
	group, err := managers.Start(ctx, r.Dir, 3)
	if err != nil {
		return err
	}
	defer group.Close()
	if r.Wants(partEvents) {
		if err := runEvents(ctx, r, group); err != nil {
			return err
		}
	}
	if !r.Wants(partRack) {
		return nil
	}
	reset, err := reset(ctx, r, group)
	if err != nil {
		return fmt.Errorf("a rack is reset: %w", err)
	}
	reportReset(r.Result, reset)
	return nil
}

func runEvents(ctx context.Context, r *report.Run, group *managers.Group) error {
	memory, noMemory := newMemoryGroup()
	defer os.Remove(memory) //nolint:errcheck // it does not exist if it could not be created
	noNetwork := lan.Available()
	all := events(memory, noMemory, noNetwork)
	sites, err := newSites(ctx, group)
	if err == nil && noNetwork == nil {
		sites[distant], err = newDistantSite(ctx, r, distantConfig())
	}
	defer sites.close()
	if err != nil {
		return err
	}
	r.Step("%d managers and %d servers are running", len(group.All), len(sites)*servers)
	outcomes := make([][]outcome, len(all))
	err = report.Rounds(ctx, r.Rounds, len(all), func(round, i int) error {
		if all[i].skip != "" {
			r.Step("round %d: %s: SKIPPED: %s", round+1, all[i].title, all[i].skip)
			return nil
		}
		o, err := sites[all[i].at].measureEvent(ctx, all[i])
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].title, err)
		}
		outcomes[i] = append(outcomes[i], o)
		r.Step("round %d: %s: %v", round+1, all[i].title, o.service.Round(time.Millisecond))
		return nil
	})
	if err == nil {
		reportEvents(r.Result, all, outcomes)
	}
	return err
}

type sites map[kind]*site

// newSites starts the sites of all kinds.
func newSites(ctx context.Context, group *managers.Group) (sites, error) {
	all := make(sites)
	for at, c := range map[kind]siteConfig{
		plain:      {namespace: "availability"},
		supervised: {namespace: "supervised", supervised: true},
		short:      {namespace: "short", supervised: true, timing: managers.Preset("fast")},
	} {
		c.racks, c.servers, c.lookups = servers, 1, 4
		s, err := newSite(ctx, group, c)
		if err != nil {
			return all, err
		}
		all[at] = s
	}
	return all, nil
}

// distantConfig has a server whose network can be cut.
func distantConfig() siteConfig {
	return siteConfig{namespace: "distant", timing: managers.Preset("fast"), racks: servers, servers: 1, lookups: 4}
}

func (all sites) close() {
	for _, s := range all {
		if s != nil {
			s.Close()
		}
	}
}

// Numbers in the papers' texts, the bounds of our own times, and goals.
const (
	paperLease  = 60.0 // seconds: Centrifuge's leases, for which the keys of a server that dies are not served (5.1.1)
	paperReset  = 60.0 // seconds: PRS restores availability after a rack is reset in less than a minute (7.2)
	leaseLimit  = 12.0 // 10 s, by a clock that may be 1.2 times slower
	leaderLimit = 2.4  // 2 s, the same
	crashLimit  = 0.15 // a supervised server crashes
	crashMedian = 0.08 // the same, in the median
	rackLimit   = 1.5  // a rack of supervised servers dies
	lostLimit   = 4.5  // a host is lost: 3 s, by a clock that may be 1.2 times slower, and the retries
)

func seconds(all []outcome, of func(outcome) time.Duration) report.Summary {
	return report.SummariseOf(all, func(o outcome) float64 { return of(o).Seconds() })
}

func reportEvents(r *report.Result, all []event, outcomes [][]outcome) {
	t := report.NewTable("", "event", "longest operation, ms", "low", "high", "no change recorded for, ms", "low", "high")
	milli := func(s report.Summary) report.Summary {
		return report.Summary{Median: 1000 * s.Median, Low: 1000 * s.Low, High: 1000 * s.High}
	}
	failed := 0
	for i, e := range all {
		if e.skip != "" {
			t.Add(e.title + ": NOT MEASURED: " + e.skip)
			continue
		}
		service := seconds(outcomes[i], func(o outcome) time.Duration { return o.service })
		row := []any{e.title, milli(service)}
		if e.changes {
			changes := seconds(outcomes[i], func(o outcome) time.Duration { return o.changes })
			row = append(row, milli(changes))
			r.Less(e.name+"-changes", changes.Median, "s", "the leader's time and drift", leaderLimit)
		}
		t.Add(row...)
		for _, o := range outcomes[i] {
			failed += o.failed
		}
		e.report(r, service)
	}
	r.Want("no operation is given up", float64(failed), "", failed == 0)
	r.Add("One failure", "The longest operation of all frontends in a round: median, low and high of the rounds.", t)
}

// report adds the headline and the goals of an event.
func (e *event) report(r *report.Result, service report.Summary) {
	switch {
	case e.name == "owner-crash":
		r.Less(e.name, service.Median, "s", "Centrifuge's lease, in its text", paperLease)
	case e.name == "drain":
		r.Less(e.name, service.Median, "s", "our lease x drift, without a goodbye", leaseLimit)
	case e.at == supervised:
		r.Less(e.name, service.Median, "s", "our lease x drift, without a supervisor", leaseLimit)
		r.Want(fmt.Sprintf("%s: no operation takes longer than %.0f ms in the median of the rounds", e.title, 1000*e.median),
			service.Median, "s", service.Median < e.median)
	case e.at == short || e.at == distant:
		r.Less(e.name, service.Median, "s", "our default lease x drift", leaseLimit)
	}
	r.Want(fmt.Sprintf("%s: no operation takes longer than %s s", e.title, report.Number(e.limit)), service.High, "s", service.High < e.limit)
}

func reportReset(r *report.Result, found *resets) {
	t := report.NewTable("", "operations that begin", "number", "p50, ms", "p80", "p90", "p99", "longest, s")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{{"without trouble", found.normal}, {"when the rack dies", found.dies}, {"when it is back", found.back}, {"when it dies, supervised", found.supervised}} {
		at := func(share float64) float64 { return 1000 * report.Quantile(row.took, share).Seconds() }
		t.Add(row.name, len(row.took), at(0.5), at(0.8), at(0.9), at(0.99), at(1)/1000)
	}
	r.Add("A rack is reset: PRS, figure 9",
		fmt.Sprintf("%d servers in %d racks, and %s frontends. PRS's figure begins when the rack is powered up, after its leases have expired; its\n"+
			"text reports tens of seconds, less than a minute, for 1 in 5 keys. Here other servers have the keys meanwhile, and ranges\n"+
			"return to the rack a few at a time. The second row, which PRS does not show, is the death of the rack: its keys wait until\n"+
			"its leases expire. In the last row each server of the rack is a process with a supervisor, and all are killed.", racks*rackServers, racks, report.Thousands(frontendCount)), t)
	back, dies := report.Quantile(found.back, 1).Seconds(), report.Quantile(found.dies, 1).Seconds()
	r.Less("rack-back", back, "s", "PRS's text", paperReset)
	r.Less("rack-dies", dies, "s", "Centrifuge's lease, in its text", paperLease)
	proven := report.Quantile(found.supervised, 1).Seconds()
	r.Less("supervised-rack-dies", proven, "s", "our lease x drift, without supervisors", leaseLimit)
	r.Want(fmt.Sprintf("%d of %d supervised servers are killed: all keys are served within 1.5 s", rackServers, racks*rackServers), proven, "s", proven < rackLimit)
	r.Want("a rack dies: all keys are served within lease x drift + 3 s (12 s + 3 s)", dies, "s", dies < leaseLimit+3)
	r.Want("the rack is back: no operation takes longer than 1 s", back, "s", back < 1)
}
