package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// A Report is the result of a demo.
type Report struct {
	Seed      uint64        `json:"seed"`
	Blows     []string      `json:"blows"`
	Addresses int           `json:"addresses_learned"`
	P50       float64       `json:"learned_p50_ms"`
	Longest   float64       `json:"learned_max_ms"`
	Queues    promise.Tally `json:"queues"`
	Topics    promise.Tally `json:"topics"`
	Presence  Presence      `json:"presence"`
}

// A Presence is the result of the users' operations. Latencies are of successful ones.
type Presence struct {
	Operations  int64   `json:"operations"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Max         float64 `json:"max_ms"`
	Errors      int     `json:"errors"`                  // failed operations; publishers retry them
	Gaps        int     `json:"reads_of_lost_users"`     // before they were published again
	Republished int     `json:"users_republished"`       // lost and published again
	Users       int     `json:"users"`                   // all of them
	Absent      int     `json:"users_absent_at_the_end"` // without the presence that was published last
}

func (p *Presence) err() error {
	if p.Absent == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d users do not have their published presence", p.Absent, p.Users)
}

// setLearned sets the latency of address changes.
func (r *Report) setLearned(took []time.Duration) {
	slices.Sort(took)
	if r.Addresses = len(took); r.Addresses > 0 {
		r.P50, r.Longest = milliseconds(took[(len(took)-1)/2]), milliseconds(took[len(took)-1])
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// String returns the report as text.
func (r *Report) String() string {
	w, p := &strings.Builder{}, &r.Presence
	fmt.Fprintf(w, "\nfaults     %d (--seed %d)\n", len(r.Blows), r.Seed)
	fmt.Fprintf(w, "home PC    the work PC learned %d addresses: half of them within %.0f ms, the longest took %.0f ms\n", r.Addresses, r.P50, r.Longest)
	fmt.Fprintf(w, "queues     %d messages were acknowledged, %s\n", r.Queues.Due, r.Queues)
	fmt.Fprintf(w, "topics     %d copies were due, %s\n", r.Topics.Due, r.Topics)
	fmt.Fprintf(w, "presence   %d operations: half of them within %.2f ms, 99 %% within %.2f ms, the longest %.0f ms; %d failed, %d reads of lost users; %d users were lost and published again, and %d of %d are there",
		p.Operations, p.P50, p.P99, p.Max, p.Errors, p.Gaps, p.Republished, p.Users-p.Absent, p.Users)
	return w.String()
}
