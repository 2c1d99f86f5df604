package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Pace is how many operations succeeded, and how long they took, in milliseconds.
type Pace struct {
	Operations int64   `json:"operations"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
}

// A Report is the result of a load.
type Report struct {
	Seconds     float64 `json:"seconds"`
	Publishers  int     `json:"publishers"`
	Users       int     `json:"users"`
	PerSecond   float64 `json:"operations_per_second"` // that succeeded
	All         Pace    `json:"all"`
	Inserts     Pace    `json:"inserts"`
	Updates     Pace    `json:"updates"`
	Reads       Pace    `json:"reads"`
	Errors      int     `json:"errors"` // operations that failed; publishers retry theirs
	LastError   string  `json:"last_error,omitempty"`
	Gaps        int     `json:"reads_of_lost_users"`     // before they were published again
	Republished int     `json:"users_republished"`       // because they were lost
	Absent      int     `json:"users_absent_at_the_end"` // as they were published last
}

func (l *Load) report() *Report {
	took := time.Since(l.began)
	r := &Report{Seconds: took.Seconds(), Publishers: len(l.publishers), Users: len(l.names)}
	total, all := newHistograms(), newHistogram()
	for _, c := range l.callers {
		for i, h := range c.took {
			total[i].Merge(h)
			all.Merge(h)
		}
		r.Errors += c.errors
		r.Gaps += c.gaps
		if c.last != nil {
			r.LastError = c.last.Error()
		}
	}
	r.All, r.Inserts, r.Updates, r.Reads = paceOf(all), paceOf(total[insert]), paceOf(total[update]), paceOf(total[read])
	r.PerSecond = float64(r.All.Operations) / took.Seconds()
	return r
}

func paceOf(h *hdrhistogram.Histogram) Pace {
	milliseconds := func(micros int64) float64 { return float64(micros) / 1000 }
	return Pace{h.TotalCount(), milliseconds(h.ValueAtPercentile(50)), milliseconds(h.ValueAtPercentile(99)), milliseconds(h.Max())}
}

// Err returns an error if users are absent.
func (r *Report) Err() error {
	if r.Absent == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d users are not there as they were published", r.Absent, r.Users)
}

// String is the report in a line.
func (r *Report) String() string {
	there := "all"
	if r.Absent > 0 {
		there = fmt.Sprintf("%d of", r.Users-r.Absent)
	}
	text := fmt.Sprintf("%d operations of %d publishers, %.0f a second: half of them within %.2f ms, 99 %% within %.2f ms, the longest %.0f ms; %d failed, %d found nobody; %d users were lost and published again, and %s %d are there",
		r.All.Operations, r.Publishers, r.PerSecond, r.All.P50, r.All.P99, r.All.Max, r.Errors, r.Gaps, r.Republished, there, r.Users)
	if r.LastError != "" {
		text += fmt.Sprintf(" (one of the errors: %s)", r.LastError)
	}
	return text
}
