// Package plaintext keeps what is not encrypted on this computer, unless somebody has said
// otherwise. Whoever reads along can be an owner, and whoever answers in a manager's place
// can make two of one.
package plaintext

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/hostport"
)

// remedy says what to do about it, in a library, with the fields that there are.
func remedy(fields string) string {
	return "set " + fields + ", from package secure, or to insecure.NewCredentials() if the network can be trusted"
}

// Check refuses addresses of others that would be called in plain text.
func Check(addrs ...string) error {
	for _, addr := range addrs {
		if !hostport.Loopback(addr) {
			return errors.New(addr + " is another computer, or may be, and would be spoken to in plain text: " + remedy("Credentials"))
		}
	}
	return nil
}

// CheckListener refuses a listener that others reach, and that would speak plain text. One
// that is not of TCP is its owner's business: a socket of this computer, or a network in
// memory. The fields are where credentials can be set.
func CheckListener(l net.Listener, fields string) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		return errors.New("others than this computer reach " + at.String() + ", and would be spoken to in plain text: " + remedy(fields))
	}
	return nil
}

// Exposed reports whether a listener that others reach speaks plain text: somebody has said
// that it may.
func Exposed(l net.Listener, c credentials.TransportCredentials) bool {
	return c.Info().SecurityProtocol == insecure.NewCredentials().Info().SecurityProtocol && CheckListener(l, "") != nil
}

// Credentials are for those who have none: connections in plain text, within this computer.
// An address may be one of ours by its name and lead elsewhere, and whom a manager points
// to as its leader was never in a configuration: so it is seen when the connection is there.
func Credentials() credentials.TransportCredentials { return local{insecure.NewCredentials()} }

type local struct {
	credentials.TransportCredentials
}

func (l local) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok && !to.IP.IsLoopback() {
		return nil, nil, errors.New(to.String() + " is another computer, and would be spoken to in plain text: " + remedy("Credentials"))
	}
	plain, info, err := l.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	return &hearing{Conn: plain}, info, nil
}

// hearing is a client's end of a connection, which says what is likely if the other side
// ends it without a word: a server that wants TLS does so.
type hearing struct {
	net.Conn
	heard atomic.Bool
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	switch {
	case n > 0:
		if !h.heard.Load() {
			h.heard.Store(true)
		}
	case err != nil && !h.heard.Load():
		err = fmt.Errorf("it hangs up on plain text, perhaps because it wants TLS and certificates: %w", err)
	}
	return n, err
}

func (l local) Clone() credentials.TransportCredentials {
	return local{l.TransportCredentials.Clone()}
}
