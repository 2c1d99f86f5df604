package connlimit

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/secure"
)

// Callers is [Credentials] for servers that authenticate clients. A client with a certificate is
// established by the handshake, and has at most [Config.PerIdentity] connections. A client without one may
// authenticate by the token of a call; the server then calls [Known]. Until then its connection is pending, as one
// of [Config.MaxAnonymous], so that anonymous clients cannot occupy all connections by silence or rejected calls.
func Callers(given credentials.TransportCredentials) credentials.TransportCredentials {
	return prefaceCredentials{given, establishIdentity}
}

// establishIdentity establishes the connection of a client with a certificate. It has no effect on
// connections of other listeners.
func establishIdentity(raw net.Conn, auth credentials.AuthInfo) error {
	c := connOf(raw)
	if c == nil {
		return nil
	}
	id, ok := identityOf(auth)
	if !ok {
		c.listener.addAnonymous(c)
		return nil
	}
	if !c.listener.claim(c, id) {
		return fmt.Errorf("connection of %s rejected: the limit of %d connections per identity is reached", id, c.listener.cfg.PerIdentity)
	}
	establish(c)
	return nil
}

// identityOf returns the identity in a verified certificate; false without certificate or identity.
func identityOf(auth credentials.AuthInfo) (id secure.Identity, ok bool) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", false
	}
	ids := secure.Identities(info.State.PeerCertificates[0])
	if len(ids) == 0 {
		return "", false
	}
	return ids[0], true
}

// Known establishes the connection of an authenticated call.
func Known(ctx context.Context) {
	if c := connOfCall(ctx); c != nil {
		establish(c)
	}
}

// An address is the address of a peer with its connection: handlers of gRPC get nothing else of a connection.
type address struct {
	net.Addr
	conn *conn
}

// claim counts a connection of an identity. It reports false if the identity has too many.
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

// addAnonymous marks a pending connection as anonymous, and closes the oldest one above the limit.
func (l *Listener) addAnonymous(c *conn) {
	l.evict(Crowded, func() *conn {
		if c.pending != nil { // it has not been dropped meanwhile
			c.anonymous = l.anonymous.PushBack(c)
		}
		if l.anonymous.Len() > l.cfg.MaxAnonymous {
			return l.anonymous.Front().Value.(*conn)
		}
		return nil
	})
}
