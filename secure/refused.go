package secure

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// A client of TLS 1.3 has finished its handshake before the server has looked at its
// certificate. A server that refuses it says so in an alert and hangs up; if the client
// is writing at that moment it sees a broken pipe, and the alert lies unread. Whoever
// looks for the cause needs the alert.

// lastWords is how long we listen for an alert when a connection has broken: it came
// before the end of the connection, or not at all.
const lastWords = 100 * time.Millisecond

// hearing is a client's end of a connection that tells an alert from a broken one.
type hearing struct{ net.Conn }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	return n, refused(err)
}

func (h hearing) Write(b []byte) (int, error) {
	n, err := h.Conn.Write(b)
	if err != nil {
		err = h.why(err)
	}
	return n, err
}

// why is the alert that a connection has ended with, or else the error of writing to it.
// An alert that somebody has read already is returned again.
func (h hearing) why(err error) error {
	if h.SetReadDeadline(time.Now().Add(lastWords)) != nil {
		return err
	}
	var one [1]byte
	if _, said := h.Conn.Read(one[:]); isAlert(said) {
		return refused(said)
	}
	return err
}

// refused explains an alert.
func refused(err error) error {
	if !isAlert(err) {
		return err
	}
	return fmt.Errorf("the server refuses our certificate, or that we show none; its log says why: %w", err)
}

// isAlert: crypto/tls has no type for alerts of the other side that it lets us see.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
