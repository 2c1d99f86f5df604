package connlimit

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/secure"
)

// Callers is [Credentials] for servers that want to know who calls. Whoever shows a
// certificate has introduced himself, and has [Config.PerIdentity] connections at most.
// Whoever shows none may yet show a token, with a call: the server says so by [Known].
// Until then the connection goes on waiting, among [Config.Strangers] like it, so that
// those whom nobody knows cannot take all places by keeping quiet, or by asking for what
// they are refused.
func Callers(given credentials.TransportCredentials) credentials.TransportCredentials {
	return introducing{given, welcome}
}

// welcome decides whether a connection that has said how it begins has introduced itself.
// One that is none of ours is let alone.
func welcome(raw net.Conn, who credentials.AuthInfo) error {
	c := ours(raw)
	if c == nil {
		return nil
	}
	id, shown := shownBy(who)
	if !shown {
		c.gate.stranger(c)
		return nil
	}
	if !c.gate.claim(c, id) {
		return fmt.Errorf("%s has %d connections, and that is the limit for one identity", id, c.gate.cfg.PerIdentity)
	}
	introduce(c)
	return nil
}

// shownBy returns who has shown a certificate. One that says about nobody who it is does
// not count.
func shownBy(who credentials.AuthInfo) (id secure.Identity, shown bool) {
	info, ok := who.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", false
	}
	ids := secure.Identities(info.State.PeerCertificates[0])
	if len(ids) == 0 {
		return "", false
	}
	return ids[0], true
}

// Known says that it is known who makes a call: the connection has introduced itself.
func Known(ctx context.Context) {
	if c := caller(ctx); c != nil {
		introduce(c)
	}
}

// An address is that of a peer, by which its connection is found again: gRPC shows to
// handlers no more of it.
type address struct {
	net.Addr
	conn *conn
}

// claim gives a connection to an identity, and reports false if that has too many.
func (l *Listener) claim(c *conn, id secure.Identity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !c.counted: // it is closed already
	case l.identities[id] >= l.cfg.PerIdentity:
		l.drop(Identity)
		return false
	default:
		c.identity = id
		l.identities[id]++
	}
	return true
}

// stranger keeps a connection among those that wait, and drops the oldest of those that
// have said as much if there are too many.
func (l *Listener) stranger(c *conn) {
	l.evict(Crowded, func() *conn {
		if c.place != nil { // it has not been dropped meanwhile
			c.strange = l.strangers.PushBack(c)
		}
		if l.strangers.Len() > l.cfg.Strangers {
			return l.strangers.Front().Value.(*conn)
		}
		return nil
	})
}
