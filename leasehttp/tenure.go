package leasehttp

import (
	"context"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

var (
	errNotOwner  = leasehold.Errorf("serve", leasehold.ErrNotOwner, "", "this server does not own the key of the request, and has done nothing: look the key up again")
	errSuspended = leasehold.Errorf("serve", leasehold.ErrSuspended, "",
		"this server's lease on the key is suspended, because no manager has answered in time, and nothing was done: repeat the request here")

	// errLost is why the context of a request ended, and why it can no longer answer.
	errLost = leasehold.Errorf("serve", leasehold.ErrIndeterminate, "",
		"this server lost the key while it worked on the request, and what it did may be gone: repeat the request if it does no harm twice")
)

// lookAgain is how often a request that takes long looks whether it still has its
// lease. Nothing counts on it: whatever leaves is checked by itself, what is written
// to a hijacked connection too.
const lookAgain = time.Second

// A tenure is the time for which a request has its lease.
type tenure struct {
	owner owner.Checker
	lease owner.Lease
	end   context.CancelCauseFunc // of the request's context
	*watcher

	conn net.Conn // was hijacked; guarded by the watcher's lock
}

func newTenure(o owner.Checker, lease owner.Lease, end context.CancelCauseFunc) *tenure {
	t := &tenure{owner: o, lease: lease, end: end}
	t.watcher = watch(lookAgain, t.lookOnce)
	return t
}

// held reports whether the lease has been held without a gap.
func (t *tenure) held() bool { return t.owner.Held(t.lease) }

func (t *tenure) lookOnce() (again bool) {
	if t.held() || t.owner.Suspended(t.lease.Key) { // which may go on, as it was
		return true
	}
	t.end(errLost)
	if t.conn != nil {
		_ = t.conn.Close() // nobody is left who could be told
	}
	return false
}

// release is called when the handler has returned. A connection that it has
// hijacked may live on, and is watched until it is closed.
func (t *tenure) release() {
	t.mu.Lock()
	bound := t.conn != nil
	t.mu.Unlock()
	if !bound {
		t.stop()
	}
}

func (t *tenure) bind(conn net.Conn) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn = conn; t.stopped { // it ended this very moment
		_ = conn.Close()
	}
	return &boundConn{conn, t}
}

type boundConn struct {
	net.Conn
	tenure *tenure
}

// Write asks for the lease before anything leaves.
func (c *boundConn) Write(p []byte) (int, error) {
	if !c.tenure.held() {
		return 0, errLost
	}
	return c.Conn.Write(p)
}

func (c *boundConn) Close() error {
	c.tenure.stop()
	return c.Conn.Close()
}

// CloseWrite says that no more will come, if the connection can.
func (c *boundConn) CloseWrite() error { return closeWrite(c.Conn) }
