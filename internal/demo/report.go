package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/witness"
)

// A Report is what a demo found out. Its JSON form is read by programs: fields
// may be added, none is renamed or removed.
type Report struct {
	Seconds float64 `json:"seconds"` // for which callers went on

	Store     string `json:"store"`     // where managers have their tables: disk or flease
	Keys      int    `json:"keys"`      // of all users, one each
	ValueSize int    `json:"valueSize"` // bytes of a status

	Requests  uint64 `json:"requests"`       // that have ended, each however often it was tried
	Retries   uint64 `json:"retries"`        // attempts after the first
	Failures  uint64 `json:"failures"`       // requests that were given up: never answered
	Failed    uint64 `json:"requestsFailed"` // the same
	Misroutes uint64 `json:"misroutes"`      // attempts that a server refused because it did not own the key

	// Requests are due at a steady rate, of users drawn at random, whatever has
	// become of earlier ones. Times count from when they were due.
	Availability        float64 `json:"availability"` // share of requests that succeeded within 1 s, 0 to 1
	Eventually          float64 `json:"eventually"`   // share that succeeded at all
	Success             float64 `json:"success"`      // the same
	FirstTry            float64 `json:"firstTry"`     // share that succeeded at the first attempt, made when they were due
	MedianMillis        float64 `json:"medianMillis"`
	P99Millis           float64 `json:"p99Millis"`
	WithoutOwnerSeconds float64 `json:"withoutOwnerSeconds"` // for which users tried whose first attempt did not reach an owner, all together

	Losses       uint64            `json:"losses"` // that callers were notified of
	LossesFor    map[string]uint64 `json:"lossesByCause"`
	ByRestart    uint64            `json:"lossesByRestart"`   // of those, for which a restart is to blame
	Republished  uint64            `json:"republished"`       // statuses set again because of them
	StaleAnswers uint64            `json:"staleAnswers"`      // from before what had been acknowledged
	SilentLosses uint64            `json:"silentLosses"`      // answers that knew nothing of it, and no loss was told
	Garbled      uint64            `json:"garbledAnswers"`    // with a status that the user has not set
	LookedUp     int               `json:"keysLookedThrough"` // at the end, to see that each has its status

	Tenures             uint64 `json:"tenures"` // times for which one server held one key, which were compared
	Checked             uint64 `json:"checked"` // operations whose checks were compared
	DualOwnership       uint64 `json:"dualOwnership"`
	GenerationReversals uint64 `json:"generationReversals"` // a key's generation did not rise

	OwnersKilled         int     `json:"ownersKilled"`
	OwnersStopped        int     `json:"ownersStopped"` // for longer than their leases lasted, and let go on
	LeadersKilled        int     `json:"leadersKilled"`
	FailoverMillis       []int64 `json:"failoverMillis"` // of each leader killed
	LeasesLostInFailover int     `json:"leasesLostInFailover"`

	Rolling     bool    `json:"rollingRestart"`
	Restarts    int     `json:"restarts"`    // of owners that were asked to end, and came back
	Rounds      int     `json:"rounds"`      // in which all were restarted
	MovedRanges uint64  `json:"movedRanges"` // from one owner to another, with their state
	MovedShare  float64 `json:"movedShare"`  // of all keys, each time that one moved
	// Of a rolling restart, for how long keys had no answer when they moved, as
	// callers saw it who kept asking.
	Unavailable Unavailability `json:"unavailableMillis"`

	OutageSeconds float64 `json:"outageSeconds"`                 // for which no manager ran
	ByOutage      uint64  `json:"lossesByOutage"`                // that callers were notified of, where nothing else was done
	ResumedRanges int     `json:"resumedRanges"`                 // whose leases were suspended in it, and go on with the same generations
	AfterReturn   float64 `json:"unavailableSecondsAfterReturn"` // from when a manager leads again until all keys that were asked for had an answer

	TLS           bool `json:"tls"`                 // all processes spoke TLS, and managers went by a policy
	Renewed       int  `json:"certificatesRenewed"` // of managers and owners, which went on meanwhile
	LostToRenewal int  `json:"leasesLostInRenewal"`

	Interrupted bool   `json:"interrupted"` // it was ended before its time
	Kept        string `json:"kept,omitempty"`

	violation  string // what the oracle saw first
	unjudged   uint64
	unanswered int           // requests of those who keep asking, given up
	outage     time.Duration // that was asked for
}

// An Unavailability is for how long keys had no answer: from the last one before
// a request was refused, to the next. Times are in milliseconds.
type Unavailability struct {
	Keys   int     `json:"keys"`  // that were asked about
	Times  uint64  `json:"times"` // that one was unavailable
	Median float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// fill takes up what callers, nemesis and oracle have counted.
func (r *Report) fill(c counts, p pace, d deeds, v witness.Verdict) {
	r.Requests, r.Retries, r.Failures, r.Misroutes, r.Failed = c.requests, c.retries, c.failures, c.misroutes, c.failures
	if c.requests > 0 {
		of := func(n uint64) float64 { return float64(n) / float64(c.requests) }
		r.Availability, r.Eventually, r.FirstTry = of(c.prompt), of(c.requests-c.failures), of(c.firstTry)
	}
	r.Success, r.ByRestart, r.Garbled, r.LookedUp = r.Eventually, c.byRestart, c.garbled, c.lookedThrough
	r.MedianMillis, r.P99Millis, r.WithoutOwnerSeconds = millis(p.median), millis(p.slow), c.unowned.Seconds()
	r.Losses, r.Republished, r.StaleAnswers, r.SilentLosses = c.losses, c.republished, c.stale, c.silent
	r.LossesFor = make(map[string]uint64)
	for cause, n := range c.byCause {
		r.LossesFor[cause.String()] = n
	}
	r.Tenures, r.Checked, r.DualOwnership, r.GenerationReversals = v.Tenures, v.Checked, v.Duals, v.Reversals
	r.violation, r.unjudged = v.First, v.Unjudged
	r.OwnersKilled, r.OwnersStopped, r.LeadersKilled, r.LeasesLostInFailover = d.owners, d.stopped, d.leaders, d.leasesLost
	r.Restarts, r.Rounds = d.restarts, d.rounds
	r.Renewed, r.LostToRenewal = d.renewed, d.lostToRenewal
	r.OutageSeconds, r.ResumedRanges, r.AfterReturn = d.outage.Seconds(), d.resumed, d.unavailable.Seconds()
	r.FailoverMillis = []int64{}
	for _, f := range d.failovers {
		r.FailoverMillis = append(r.FailoverMillis, f.Milliseconds())
	}
}

// fillMoves takes up what became of keys that moved.
func (r *Report) fillMoves(ranges uint64, share float64, a absence) {
	r.MovedRanges, r.MovedShare, r.unanswered = ranges, share, a.failures
	r.Unavailable = Unavailability{a.keys, a.times, millis(a.median), millis(a.slow), millis(a.longest)}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Violation says in which way safety was violated, and is empty if it was not.
func (r *Report) Violation() string {
	var what []string
	say := func(n uint64, text string) {
		if n > 0 {
			what = append(what, fmt.Sprintf(text, n))
		}
	}
	say(r.DualOwnership, "%d times two owners held a key at the same time")
	say(r.GenerationReversals, "%d times the generation of a key did not rise")
	say(r.StaleAnswers, "%d answers were older than what had been acknowledged")
	say(r.SilentLosses, "%d statuses that had been acknowledged were gone, and nobody was told of a loss")
	say(r.Garbled, "%d answers were not what the user had set")
	if r.violation != "" {
		what = append(what, r.violation)
	}
	return strings.Join(what, "; ")
}

// Shortfall says what else went wrong or was not shown, and is empty if nothing
// was. A demo that was interrupted need not have shown anything.
func (r *Report) Shortfall() string {
	switch {
	case r.Failures > 0:
		return fmt.Sprintf("%d of %d requests were given up", r.Failures, r.Requests)
	case r.unanswered > 0:
		return fmt.Sprintf("%d requests of callers who kept asking were given up", r.unanswered)
	case r.LeasesLostInFailover > 0:
		return fmt.Sprintf("%d leases were lost because the leader was replaced; a longer --lease, or a computer with less to do, survives that", r.LeasesLostInFailover)
	case r.LostToRenewal > 0:
		return fmt.Sprintf("%d leases were lost while certificates were renewed", r.LostToRenewal)
	case r.unjudged > 0:
		return fmt.Sprintf("%d operations were on keys that the oracle had no room for", r.unjudged)
	case r.ByOutage > 0:
		return fmt.Sprintf("%d ranges lost their state because no manager ran, though their owners did", r.ByOutage)
	case r.ByRestart > 0:
		return fmt.Sprintf("%d ranges lost their state because owners were restarted, which should move it", r.ByRestart)
	case r.Interrupted:
		return ""
	case r.TLS && r.Renewed == 0:
		return "no certificate was renewed"
	case r.Requests == 0 || r.Checked == 0:
		return "there were no requests"
	case r.Tenures == 0:
		return "no owner said what it held"
	case r.Rolling:
		return r.rollingShortfall()
	case r.outage > 0:
		return r.outageShortfall()
	case r.OwnersKilled == 0 || r.LeadersKilled == 0:
		return fmt.Sprintf("%d owners and %d leaders were killed, want at least one of each", r.OwnersKilled, r.LeadersKilled)
	case r.Losses == 0:
		return fmt.Sprintf("%d owners were killed, and nobody was told of a loss", r.OwnersKilled)
	}
	return ""
}

func (r *Report) outageShortfall() string {
	switch {
	case r.OutageSeconds == 0:
		return "the managers were not killed"
	case r.LookedUp < r.Keys:
		return fmt.Sprintf("only %d of %d keys were looked through at the end", r.LookedUp, r.Keys)
	}
	return ""
}

func (r *Report) rollingShortfall() string {
	switch {
	case r.Restarts == 0:
		return "no owner was restarted"
	case r.MovedRanges == 0:
		return fmt.Sprintf("%d owners were restarted, and no range has moved", r.Restarts)
	case r.LookedUp < r.Keys:
		return fmt.Sprintf("only %d of %d keys were looked through at the end", r.LookedUp, r.Keys)
	}
	return ""
}
