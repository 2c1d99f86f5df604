package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// A Report is what was seen.
type Report struct {
	Seed      uint64        `json:"seed"`
	Blows     []string      `json:"blows"`
	Addresses int           `json:"addresses_learned"`
	P50       float64       `json:"learned_p50_ms"`
	Longest   float64       `json:"learned_max_ms"`
	Queues    promise.Tally `json:"queues"`
	Topics    promise.Tally `json:"topics"`
	Presence  *load.Report  `json:"presence"`
}

// setLearned sets how long it took to learn addresses, given all times in order.
func (r *Report) setLearned(took []time.Duration) {
	if r.Addresses = len(took); r.Addresses > 0 {
		r.P50, r.Longest = milliseconds(took[(len(took)-1)/2]), milliseconds(took[len(took)-1])
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// String is the report for people.
func (r *Report) String() string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n%s was killed, stopped or restarted (--seed %d)\n", times(len(r.Blows)), r.Seed)
	if r.Addresses == 0 {
		fmt.Fprintln(w, "home PC    the work PC learned no address: it was over too soon")
	} else {
		fmt.Fprintf(w, "home PC    the work PC learned %d addresses: half of them within %.0f ms, the longest took %.0f ms\n", r.Addresses, r.P50, r.Longest)
	}
	fmt.Fprintf(w, "queues     %d messages were acknowledged, %s\n", r.Queues.Due, r.Queues)
	fmt.Fprintf(w, "topics     %d copies were due, %s\n", r.Topics.Due, r.Topics)
	fmt.Fprintf(w, "presence   %s", r.Presence)
	return w.String()
}

func times(n int) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "once something"
	}
	return fmt.Sprintf("%d times something", n)
}
