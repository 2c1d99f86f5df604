package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

// A dialer dials and shakes hands, and remembers why it could not: gRPC's own account of
// it is hard to read.
type dialer struct {
	mu     sync.Mutex
	failed error // of the last attempt
}

func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	d.remember(err)
	return conn, err
}

func (d *dialer) remember(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err
}

// over returns credentials that do as the given ones, and remember what goes wrong. None
// are for plain text within this computer.
func (d *dialer) over(given credentials.TransportCredentials) credentials.TransportCredentials {
	if given == nil {
		given = plainCredentials(false)
	}
	return remembering{given, d}
}

type remembering struct {
	credentials.TransportCredentials
	by *dialer
}

// ClientHandshake is part of the interface.
func (r remembering) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	over, info, err := r.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		r.by.remember(explainHandshake(err))
	}
	return over, info, err
}

// Clone is part of the interface.
func (r remembering) Clone() credentials.TransportCredentials {
	return remembering{r.TransportCredentials.Clone(), r.by}
}

// explainHandshake says what a plain answer means, which crypto/tls does not.
func explainHandshake(err error) error {
	if strings.Contains(err.Error(), "first record does not look like a TLS handshake") {
		return errors.New("it speaks plain text, and we do not: start it with certificates, or leave ours out")
	}
	return err
}

// why says in few words why the last attempt failed, nil if it did not.
func (d *dialer) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var op *net.OpError
	if errors.As(d.failed, &op) {
		return errors.New(strings.TrimPrefix(op.Err.Error(), "connect: "))
	}
	return d.failed
}
