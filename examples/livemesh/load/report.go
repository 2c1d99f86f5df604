package load

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Pace is how many operations succeeded, and how long they took.
type Pace struct {
	Operations    int64
	P50, P99, Max time.Duration
}

// A Report is what came of a load.
type Report struct {
	Took                            time.Duration
	Frontends, Users                int
	All, ByInsert, ByUpdate, ByRead Pace
	Errors                          int   // operations that failed; the publishers have gone on with theirs
	LastError                       error // of one of them
	Gaps                            int   // reads that found a user lost, and not published again yet
	Republished                     int   // users who were lost, and published again
	Absent                          int   // users who were not there at the end as they were published
}

func (l *Load) report(took time.Duration) *Report {
	r := &Report{Took: took, Frontends: len(l.cfg.Frontends), Users: len(l.names)}
	var total [kinds]*hdrhistogram.Histogram
	for i := range total {
		total[i] = newHistogram()
	}
	all := newHistogram()
	for _, c := range l.callers {
		for i, h := range c.took {
			total[i].Merge(h)
			all.Merge(h)
		}
		r.Errors += c.errors
		r.Gaps += c.gaps
		if c.last != nil {
			r.LastError = c.last
		}
	}
	r.All, r.ByInsert, r.ByUpdate, r.ByRead = paceOf(all), paceOf(total[insert]), paceOf(total[update]), paceOf(total[read])
	return r
}

func paceOf(h *hdrhistogram.Histogram) Pace {
	at := func(percent float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percent)) * time.Microsecond
	}
	return Pace{h.TotalCount(), at(50), at(99), time.Duration(h.Max()) * time.Microsecond}
}

// PerSecond is how many operations succeeded in a second.
func (r *Report) PerSecond() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.All.Operations) / r.Took.Seconds()
}

// String is the report in a line.
func (r *Report) String() string {
	there := "all"
	if r.Absent > 0 {
		there = fmt.Sprintf("%d of", r.Users-r.Absent)
	}
	text := fmt.Sprintf("%d operations of %d publishers, %.0f a second: half of them within %.2f ms, 99 %% within %.2f ms, the longest %.0f ms; %d failed, %d found nobody; %d users were lost and published again, and %s %d are there",
		r.All.Operations, r.Frontends, r.PerSecond(), milliseconds(r.All.P50), milliseconds(r.All.P99), milliseconds(r.All.Max),
		r.Errors, r.Gaps, r.Republished, there, r.Users)
	if r.LastError != nil {
		text += fmt.Sprintf(" (one of the errors: %v)", r.LastError)
	}
	return text
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// MarshalJSON writes it for programs.
func (r *Report) MarshalJSON() ([]byte, error) {
	type pace struct {
		Operations int64   `json:"operations"`
		P50        float64 `json:"p50_ms"`
		P99        float64 `json:"p99_ms"`
		Max        float64 `json:"max_ms"`
	}
	of := func(p Pace) pace {
		return pace{p.Operations, milliseconds(p.P50), milliseconds(p.P99), milliseconds(p.Max)}
	}
	last := ""
	if r.LastError != nil {
		last = r.LastError.Error()
	}
	return json.Marshal(struct {
		Seconds     float64 `json:"seconds"`
		Publishers  int     `json:"publishers"`
		Users       int     `json:"users"`
		PerSecond   float64 `json:"operations_per_second"`
		All         pace    `json:"all"`
		Inserts     pace    `json:"inserts"`
		Updates     pace    `json:"updates"`
		Reads       pace    `json:"reads"`
		Errors      int     `json:"errors"`
		LastError   string  `json:"last_error,omitempty"`
		Gaps        int     `json:"reads_of_lost_users"`
		Republished int     `json:"users_republished"`
		Absent      int     `json:"users_absent_at_the_end"`
	}{
		r.Took.Seconds(), r.Frontends, r.Users, r.PerSecond(), of(r.All), of(r.ByInsert), of(r.ByUpdate), of(r.ByRead),
		r.Errors, last, r.Gaps, r.Republished, r.Absent,
	})
}
