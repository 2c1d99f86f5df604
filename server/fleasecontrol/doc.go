// Package fleasecontrol is an HTTP API on the loopback by which other processes hold leases through
// a member of a Flease group. A lease lasts as long as the connection of its request.
//
//	GET  /v1/status?resource=NAME   a [Status]
//	POST /v1/acquire                a [Request]; the response is a stream of [Answer]s
package fleasecontrol

import (
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

const answerType = "application/x-ndjson"

// A Status is the status of a member.
type Status struct {
	flease.Status
	Error    string                 `json:"error,omitempty"`    // why the member has failed
	Leases   []LeaseStatus          `json:"leases"`             // the first hundred
	Resource *flease.ResourceStatus `json:"resource,omitempty"` // the requested one
}

// A LeaseStatus is a lease that the member holds.
type LeaseStatus struct {
	Resource string    `json:"resource"`
	Fence    uint64    `json:"fence,string"`
	Until    time.Time `json:"until"`
}

// A Request requests the lease of a resource.
type Request struct {
	Resource string `json:"resource"`
	Try      bool   `json:"try,omitempty"` // do not wait for another holder to release it
	// WaitMillis is the timeout; 0 means none.
	WaitMillis int64 `json:"waitMillis,omitempty"`
}

// A State is that of a requested lease.
type State string

// The answers to a request are: some in the state Waiting during a long wait; one Held after the
// acquisition and after each renewal; and finally one Over, or Failed if it was never acquired.
const (
	Waiting State = "waiting"
	Held    State = "held"
	Over    State = "over"
	Failed  State = "failed"
)

// An Answer is one line of the response to a [Request].
type Answer struct {
	State    State     `json:"state"`
	Resource string    `json:"resource"`
	Member   flease.ID `json:"member,omitempty"`
	Fence    uint64    `json:"fence,omitempty,string"`
	Until    time.Time `json:"until,omitzero"` // on the wall clock, which both processes share
	Why      string    `json:"why,omitempty"`
}
