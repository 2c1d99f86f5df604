package demo

import (
	"fmt"
	"strings"
	"time"
)

// A Report is the result of a demo. Programs read its JSON form: fields may be added, none
// is renamed or removed.
type Report struct {
	Seconds   float64 `json:"seconds"`   // for which callers sent requests
	Store     string  `json:"store"`     // where managers have their tables: disk or flease
	Keys      int     `json:"keys"`      // of all users, one each
	ValueSize int     `json:"valueSize"` // bytes of a status
	Rolling   bool    `json:"rollingRestart"`
	TLS       bool    `json:"tls"` // all processes used TLS, and managers an access policy
	// Supervised is whether owners ran under "leasehold run", which proves their end to the leader.
	Supervised bool `json:"supervised"`

	CallCounts
	LossCounts
	OwnershipCounts
	FaultCounts
	// Unavailable is measured in rolling restarts.
	Unavailable Unavailability `json:"unavailableMillis"`

	Interrupted bool   `json:"interrupted"` // it ended before its time
	Kept        string `json:"kept,omitempty"`

	outage time.Duration // that was configured
}

// CallCounts is about requests. They are due at a steady rate, of users drawn at random,
// whatever the result of earlier ones. Latencies count from when they were due.
type CallCounts struct {
	Requests  uint64 `json:"requests"`       // that have ended, each with all its attempts
	Retries   uint64 `json:"retries"`        // attempts after the first
	Failures  uint64 `json:"failures"`       // requests that never succeeded
	Failed    uint64 `json:"requestsFailed"` // the same
	Misroutes uint64 `json:"misroutes"`      // attempts that a server refused because it did not own the key

	Availability        float64 `json:"availability"` // share of requests that succeeded within 1 s, 0 to 1
	Eventually          float64 `json:"eventually"`   // share that succeeded at all
	Success             float64 `json:"success"`      // the same
	FirstTry            float64 `json:"firstTry"`     // share that succeeded at the first attempt, made when they were due
	MedianMillis        float64 `json:"medianMillis"`
	P99Millis           float64 `json:"p99Millis"`
	WithoutOwnerSeconds float64 `json:"withoutOwnerSeconds"` // total time of requests whose first attempt did not reach an owner

	prompt, firstTry uint64 // requests
}

// LossCounts is about lost state.
type LossCounts struct {
	Losses       uint64            `json:"losses"` // notified to callers
	LossesFor    map[string]uint64 `json:"lossesByCause"`
	ByRestart    uint64            `json:"lossesByRestart"`   // caused by a restart
	ByOutage     uint64            `json:"lossesByOutage"`    // in a demo with nothing but an outage
	Republished  uint64            `json:"republished"`       // statuses set again because of losses
	StaleAnswers uint64            `json:"staleAnswers"`      // older than what had been acknowledged
	SilentLosses uint64            `json:"silentLosses"`      // answers without what had been acknowledged, and no loss was notified
	Garbled      uint64            `json:"garbledAnswers"`    // with a status that the user has not set
	LookedUp     int               `json:"keysLookedThrough"` // at the end, to see that each has its status
}

// OwnershipCounts is what the oracle found.
type OwnershipCounts struct {
	Tenures             uint64 `json:"tenures"` // times for which one server held one key, which were compared
	Checked             uint64 `json:"checked"` // operations whose checks were compared
	DualOwnership       uint64 `json:"dualOwnership"`
	GenerationReversals uint64 `json:"generationReversals"` // a key's generation did not rise

	violation string // the first that was found
	unjudged  uint64
}

// FaultCounts counts the faults and their cost.
type FaultCounts struct {
	OwnersKilled  int `json:"ownersKilled"`
	OwnersStopped int `json:"ownersStopped"` // for longer than their leases lasted, and resumed
	// RecoveryMillis is, of each owner killed, the time until all its keys had the next owners in the
	// table of the callers. The others are its median and maximum.
	RecoveryMillis       []float64 `json:"recoveryMillis"`
	RecoveryMedianMillis float64   `json:"recoveryMedianMillis"`
	RecoveryMaxMillis    float64   `json:"recoveryMaxMillis"`

	LeadersKilled        int     `json:"leadersKilled"`
	FailoverMillis       []int64 `json:"failoverMillis"` // of each leader killed
	LeasesLostInFailover int     `json:"leasesLostInFailover"`

	Restarts int `json:"restarts"` // of owners, with SIGTERM
	Rounds   int `json:"rounds"`   // in which all owners were restarted

	OutageSeconds float64 `json:"outageSeconds"`                 // for which no manager ran
	ResumedRanges int     `json:"resumedRanges"`                 // whose leases were suspended in it
	AfterReturn   float64 `json:"unavailableSecondsAfterReturn"` // from when a manager leads until all keys are served

	Renewed       int `json:"certificatesRenewed"` // of managers and owners, while they ran
	LostToRenewal int `json:"leasesLostInRenewal"`

	MovedRanges uint64  `json:"movedRanges"` // to another owner, with their state
	MovedShare  float64 `json:"movedShare"`  // of all keys, each time that one moved
}

// An Unavailability is for how long keys had no answer when they moved, in milliseconds:
// from the last answer before a request was refused, to the next.
type Unavailability struct {
	Keys   int     `json:"keys"`  // that were read continuously
	Times  uint64  `json:"times"` // that one was unavailable
	Median float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Violation describes a violation of safety; it is empty without one.
func (r *Report) Violation() string {
	var what []string
	say := func(n uint64, text string) {
		if n > 0 {
			what = append(what, fmt.Sprintf(text, n))
		}
	}
	say(r.DualOwnership, "instants at which two owners held a key: %d")
	say(r.GenerationReversals, "generations of a key that did not rise: %d")
	say(r.StaleAnswers, "answers older than what had been acknowledged: %d")
	say(r.SilentLosses, "acknowledged statuses that were gone without a notified loss: %d")
	say(r.Garbled, "answers that were not what the user had set: %d")
	if r.violation != "" {
		what = append(what, r.violation)
	}
	return strings.Join(what, "; ")
}

// Shortfall describes other failed or missing expectations; it is empty without one. A demo
// that was interrupted need not have shown anything.
func (r *Report) Shortfall() string {
	switch {
	case r.Failures > 0:
		return fmt.Sprintf("%d of %d requests failed", r.Failures, r.Requests)
	case r.LeasesLostInFailover > 0:
		return fmt.Sprintf("leases lost because the leader was replaced: %d; a longer --lease, or a computer with less to do, survives that", r.LeasesLostInFailover)
	case r.LostToRenewal > 0:
		return fmt.Sprintf("leases lost while certificates were renewed: %d", r.LostToRenewal)
	case r.unjudged > 0:
		return fmt.Sprintf("operations on keys that the oracle had no room for: %d", r.unjudged)
	case r.ByOutage > 0:
		return fmt.Sprintf("ranges that lost their state because no manager ran, though their owners did: %d", r.ByOutage)
	case r.ByRestart > 0:
		return fmt.Sprintf("ranges that lost their state because owners were restarted, which should move it: %d", r.ByRestart)
	case r.Interrupted:
		return ""
	case r.TLS && r.Renewed == 0:
		return "no certificate was renewed"
	case r.Requests == 0 || r.Checked == 0:
		return "there were no requests"
	case r.Tenures == 0:
		return "no owner reported what it held"
	}
	return r.unshown()
}

func (r *Report) unshown() string {
	kept := r.Rolling || r.outage > 0
	switch {
	case r.Rolling && r.Restarts == 0:
		return "no owner was restarted"
	case r.Rolling && r.MovedRanges == 0:
		return fmt.Sprintf("no range has moved; owners restarted: %d", r.Restarts)
	case r.outage > 0 && r.OutageSeconds == 0:
		return "the managers were not killed"
	case kept && r.LookedUp < r.Keys:
		return fmt.Sprintf("only %d of %d keys were looked through at the end", r.LookedUp, r.Keys)
	case kept:
		return ""
	case r.OwnersKilled == 0 || r.LeadersKilled == 0:
		return fmt.Sprintf("killed owners: %d, killed leaders: %d; want at least one of each", r.OwnersKilled, r.LeadersKilled)
	case r.Losses == 0:
		return fmt.Sprintf("no loss was notified; killed owners: %d", r.OwnersKilled)
	}
	return ""
}
