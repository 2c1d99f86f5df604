package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// A demoReport is what was seen. There is one only if no promise was broken.
type demoReport struct {
	Seed           uint64
	Blows          []string
	Learned        []time.Duration // how long it took to learn of a new address, sorted
	Queues, Topics promise.Tally
	Presence       *load.Report
}

// at is a share of the way from the shortest to the longest time.
func (r *demoReport) at(share float64) time.Duration {
	if len(r.Learned) == 0 {
		return 0
	}
	return r.Learned[int(share*float64(len(r.Learned)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// MarshalJSON writes it for programs.
func (r *demoReport) MarshalJSON() ([]byte, error) {
	type tally struct {
		Acknowledged int `json:"acknowledged"`
		LostAndKnown int `json:"lost_and_known"`
		LostSilently int `json:"lost_silently"`
	}
	return json.Marshal(struct {
		Seed      uint64   `json:"seed"`
		Blows     []string `json:"blows"`
		Addresses int      `json:"addresses_learned"`
		P50       float64  `json:"learned_p50_ms"`
		Longest   float64  `json:"learned_max_ms"`
		Queues    tally    `json:"queues"`
		Topics    tally    `json:"topics"`

		Presence *load.Report `json:"presence"`
	}{
		r.Seed, append([]string{}, r.Blows...), len(r.Learned), milliseconds(r.at(0.5)), milliseconds(r.at(1)),
		tally{Acknowledged: r.Queues.Due, LostAndKnown: r.Queues.Lost},
		tally{Acknowledged: r.Topics.Due, LostAndKnown: r.Topics.Lost},
		r.Presence,
	})
}

// print writes it for people.
func (r *demoReport) print(to io.Writer) error {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n%s was killed, stopped or restarted (--seed %d)\n", times(len(r.Blows)), r.Seed)
	if len(r.Learned) == 0 {
		fmt.Fprintln(w, "home PC    the work PC learned no address: it was over too soon")
	} else {
		fmt.Fprintf(w, "home PC    the work PC learned %d addresses: half of them within %.0f ms, the longest took %.0f ms\n",
			len(r.Learned), milliseconds(r.at(0.5)), milliseconds(r.at(1)))
	}
	fmt.Fprintf(w, "queues     %d messages were acknowledged, %s\n", r.Queues.Due, lost(r.Queues))
	fmt.Fprintf(w, "topics     %d copies were due, %s\n", r.Topics.Due, lost(r.Topics))
	fmt.Fprintf(w, "presence   %s\n", r.Presence)
	_, err := io.WriteString(to, w.String())
	return err
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

func lost(t promise.Tally) string {
	if t.Lost == 0 {
		return "and none was lost"
	}
	return fmt.Sprintf("%d of them lost, and who lost them knows; none silently", t.Lost)
}
