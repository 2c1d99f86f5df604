package admin

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

// A dialer dials, and records why the last attempt failed: gRPC's own description of that is
// hard to read.
type dialer struct {
	mu   sync.Mutex
	last error // nil if the last attempt succeeded
}

func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	d.record(err)
	return conn, err
}

func (d *dialer) record(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
}

// failure returns the cause of the last failed attempt without the words that repeat the address.
func (d *dialer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var op *net.OpError
	if errors.As(d.last, &op) {
		return errors.New(strings.TrimPrefix(op.Err.Error(), "connect: "))
	}
	return d.last
}

// recordingCredentials records failed handshakes.
type recordingCredentials struct {
	credentials.TransportCredentials
	dialer *dialer
}

// ClientHandshake is part of the interface.
func (r recordingCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := r.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		r.dialer.record(explainHandshake(err))
	}
	return secured, info, err
}

// Clone is part of the interface.
func (r recordingCredentials) Clone() credentials.TransportCredentials {
	return recordingCredentials{r.TransportCredentials.Clone(), r.dialer}
}

// explainHandshake says what an answer in plain text means, which crypto/tls does not.
func explainHandshake(err error) error {
	if strings.Contains(err.Error(), "first record does not look like a TLS handshake") {
		return errors.New("it speaks plain text, and we do not: start it with certificates, or leave ours out")
	}
	return err
}
