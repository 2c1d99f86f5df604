package leasehttp

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
	"github.com/leasehold-dev/leasehold/owner"
)

var (
	errNotOwner  = leasehold.Errorf("serve", leasehold.ErrNotOwner, "", "this server does not own the key, and the request was not executed: look up the owner again")
	errSuspended = leasehold.Errorf("serve", leasehold.ErrSuspended, "",
		"this server's lease is suspended because no manager responded in time, and the request was not executed: retry it here")

	// errLost is the cause of a request's context and the error of its writes after the
	// lease has ended.
	errLost = leasehold.Errorf("serve", leasehold.ErrIndeterminate, "",
		"this server lost the key while it executed the request, whose effects may be lost: retry it if it is idempotent")
)

// leaseCheckInterval is the interval between checks of the lease during a long request. They
// only save work: every write is checked by itself, on hijacked connections too.
const leaseCheckInterval = time.Second

// A leaseMonitor cancels a request's context, and closes its hijacked connection, when the
// lease has ended.
type leaseMonitor struct {
	owner owner.Checker
	lease owner.Lease
	end   context.CancelCauseFunc // of the request's context
	*watcher.Watcher

	mu   sync.Mutex
	conn net.Conn // hijacked
	lost bool     // the lease has ended
}

func newLeaseMonitor(o owner.Checker, lease owner.Lease, end context.CancelCauseFunc) *leaseMonitor {
	t := &leaseMonitor{owner: o, lease: lease, end: end}
	t.Watcher = watcher.Start(leaseCheckInterval, t.checkLease)
	return t
}

// held reports whether the lease has been held without a gap since it was checked.
func (t *leaseMonitor) held() bool { return t.owner.Held(t.lease) }

func (t *leaseMonitor) checkLease() (again bool) {
	if t.held() || t.owner.Suspended(t.lease.Key) { // a suspended lease may be resumed
		return true
	}
	t.end(errLost)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost = true; t.conn != nil {
		_ = t.conn.Close()
	}
	return false
}

// release is called when the handler has returned. A hijacked connection may stay open, and
// is monitored until it is closed.
func (t *leaseMonitor) release() {
	t.mu.Lock()
	bound := t.conn != nil
	t.mu.Unlock()
	if !bound {
		t.Stop()
	}
}

func (t *leaseMonitor) bind(conn net.Conn) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn = conn; t.lost { // the lease ended concurrently
		_ = conn.Close()
	}
	return &boundConn{conn, t}
}

type boundConn struct {
	net.Conn
	leaseMonitor *leaseMonitor
}

// Write fails without the lease.
func (c *boundConn) Write(p []byte) (int, error) {
	if !c.leaseMonitor.held() {
		return 0, errLost
	}
	return c.Conn.Write(p)
}

func (c *boundConn) Close() error {
	c.leaseMonitor.Stop()
	return c.Conn.Close()
}

// CloseWrite closes the writing side, if the connection supports that.
func (c *boundConn) CloseWrite() error { return closeWrite(c.Conn) }
