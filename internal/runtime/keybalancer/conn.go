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
	most int64                    // calls at a time; 0 is any number
	done func(balancer.DoneInfo)  // release, made once and not for each call
	view atomic.Pointer[connView] // what pickers know

	outstanding atomic.Int64 // calls that were picked and are not done

	known connectivity.State // what the policy knows
}

// A connView is the state of a connection. It is immutable but for wanted.
type connView struct {
	state   connectivity.State
	failure error       // why, if the state is TransientFailure
	wanted  atomic.Bool // somebody has asked an idle one to connect
}

func newConn(addr string, most int) *conn {
	c := &conn{addr: addr, most: int64(most), known: connectivity.Idle}
	c.view.Store(&connView{state: connectivity.Idle})
	c.done = func(balancer.DoneInfo) { c.outstanding.Add(-1) }
	return c
}

// set is called by the policy.
func (c *conn) set(s balancer.SubConnState) {
	c.known = s.ConnectivityState
	c.view.Store(&connView{state: s.ConnectivityState, failure: s.ConnectionError})
}

// connect begins to connect, once for as long as the connection stays idle.
func (c *conn) connect(v *connView) {
	if v.wanted.CompareAndSwap(false, true) {
		c.sub.Connect() // which does not wait
	}
}

// acquire reports whether there is room for one more call, and counts it. What is
// counted beyond the bound for a moment may keep out a call that there is room for,
// but lets none in that there is no room for.
func (c *conn) acquire() bool {
	if n := c.outstanding.Add(1); c.most > 0 && n > c.most {
		c.outstanding.Add(-1)
		return false
	}
	return true
}
