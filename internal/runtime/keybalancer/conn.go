package keybalancer

import (
	"sync/atomic"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// A conn is the connection to one server.
type conn struct {
	addr string
	sub  balancer.SubConn
	done func(balancer.DoneInfo)  // ends a call; allocated once, not per call
	view atomic.Pointer[connView] // state for pickers

	maxOutstanding int64 // 0: no limit
	outstanding    atomic.Int64

	known connectivity.State // state for the policy
}

// A connView is the state of a connection. It is immutable except for wanted.
type connView struct {
	state   connectivity.State
	failure error       // set if the state is TransientFailure
	wanted  atomic.Bool // connect was called
}

func newConn(addr string, maxOutstanding int) *conn {
	c := &conn{addr: addr, maxOutstanding: int64(maxOutstanding), known: connectivity.Idle}
	c.view.Store(&connView{state: connectivity.Idle})
	c.done = func(balancer.DoneInfo) { c.outstanding.Add(-1) }
	return c
}

// set stores a state change of the policy.
func (c *conn) set(s balancer.SubConnState) {
	c.known = s.ConnectivityState
	c.view.Store(&connView{state: s.ConnectivityState, failure: s.ConnectionError})
}

// connect starts to connect an idle connection, once per idle period.
func (c *conn) connect(v *connView) {
	if v.wanted.CompareAndSwap(false, true) {
		c.sub.Connect() // it does not block
	}
}

// acquire counts a call, or reports false at the limit. Concurrent calls may be rejected slightly below the
// limit, but none is accepted above it.
func (c *conn) acquire() bool {
	if n := c.outstanding.Add(1); c.maxOutstanding > 0 && n > c.maxOutstanding {
		c.outstanding.Add(-1)
		return false
	}
	return true
}
