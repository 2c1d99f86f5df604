package main

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// A fleaseResource is what a member knows about a resource, for programs.
type fleaseResource struct {
	Name    string    `json:"name"`
	State   string    `json:"state"` // held, free or unknown, as far as this member knows
	Holder  uint32    `json:"holder,omitempty"`
	Fence   string    `json:"fence,omitempty"`
	Until   time.Time `json:"until,omitzero"` // unless it is renewed, by the holder's clock
	Waiting int       `json:"waiting"`        // how many wait for it through this member
	Why     string    `json:"why,omitempty"`  // what the first of them waits for
}

func fleaseResourceOf(s flease.ResourceStatus) *fleaseResource {
	r := &fleaseResource{Name: s.Resource, State: "free", Waiting: s.Waiting}
	switch {
	case s.Holder.Unsure:
		r.State = "unknown"
	case s.Holder.ID != 0:
		r.State, r.Holder, r.Fence, r.Until = "held", uint32(s.Holder.ID), decimal(s.Holder.Fence), s.Holder.Until
	}
	if s.Why != nil {
		r.Why = s.Why.Error()
	}
	return r
}

func (r *fleaseResource) text(now time.Time) string {
	var text string
	switch r.State {
	case "held":
		text = fmt.Sprintf("seems to be held by member %d, fence %s, for %s unless it is renewed", r.Holder, r.Fence, brief(r.Until.Sub(now)))
	case "free":
		text = "nobody seems to hold it"
	default:
		text = "this member has heard nothing of it, and somebody may hold it all the same"
	}
	if r.Waiting > 0 {
		text += fmt.Sprintf("; %d wait for it here: %s", r.Waiting, shown(r.Why))
	}
	return text
}

// text warns of packets that were of no use.
func (t *fleaseTraffic) text() string {
	text := fmt.Sprintf("%d came, %d went, %d were lost here", t.PacketsIn, t.PacketsOut, t.Lost)
	if t.Refused > 0 {
		text += ", " + bad(fmt.Sprintf("%d were refused: the log may know of another key", t.Refused))
	}
	if t.Strange > 0 {
		text += ", " + bad(fmt.Sprintf("%d came from strangers", t.Strange))
	}
	return text
}
