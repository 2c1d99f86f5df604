package connlimit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
)

// Credentials returns server credentials for connections of a [Listener]. They run the given handshake, then read
// the HTTP/2 preface and the first SETTINGS frame. gRPC allocates its buffers, most of the cost of a
// connection, only after that.
func Credentials(given credentials.TransportCredentials) credentials.TransportCredentials {
	return prefaceCredentials{given, func(raw net.Conn, _ credentials.AuthInfo) error {
		establish(raw)
		return nil
	}}
}

// prefaceCredentials call established after the handshake and the preface.
type prefaceCredentials struct {
	credentials.TransportCredentials
	established func(raw net.Conn, auth credentials.AuthInfo) error
}

func (p prefaceCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	outer, auth, err := p.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	preface, err := readPreface(outer)
	if err == nil {
		err = p.established(raw, auth)
	}
	if err != nil {
		_ = outer.Close() // there is no request to reply to
		return nil, nil, err
	}
	return &prefacedConn{Conn: outer, unread: preface, inner: connOf(raw)}, auth, nil
}

func (p prefaceCredentials) Clone() credentials.TransportCredentials {
	return prefaceCredentials{p.TransportCredentials.Clone(), p.established}
}

const (
	frameHeader = 9 // length, type, flags and stream of an HTTP/2 frame
	// maxSettings is the maximum length of the first SETTINGS frame. HTTP/2 has about ten
	// settings of six bytes each.
	maxSettings = 256
)

// readPreface reads the HTTP/2 preface and the first SETTINGS frame.
func readPreface(from io.Reader) ([]byte, error) {
	said := make([]byte, len(http2.ClientPreface)+frameHeader)
	if _, err := io.ReadFull(from, said); err != nil {
		return nil, err
	}
	preface, header := said[:len(http2.ClientPreface)], said[len(http2.ClientPreface):]
	if !bytes.Equal(preface, []byte(http2.ClientPreface)) {
		return nil, fmt.Errorf("connection rejected: it starts with %q, want the HTTP/2 preface", preface)
	}
	length := int(header[0])<<16 | int(header[1])<<8 | int(header[2])
	if kind := http2.FrameType(header[3]); kind != http2.FrameSettings || length > maxSettings {
		return nil, fmt.Errorf("connection rejected: the first HTTP/2 frame has type %v and %d bytes, want SETTINGS of at most %d", kind, length, maxSettings)
	}
	settings := make([]byte, length)
	if _, err := io.ReadFull(from, settings); err != nil {
		return nil, err
	}
	return slices.Concat(said, settings), nil
}

// A prefacedConn returns the bytes of the preface again. It has one reader at a time, like all
// connections of gRPC.
type prefacedConn struct {
	net.Conn
	unread []byte // of the preface; nil if none
	inner  *conn  // nil if the connection is not of a Listener
}

// RemoteAddr returns the address of the peer, with the connection for [connOfCall].
func (c *prefacedConn) RemoteAddr() net.Addr {
	if c.inner == nil {
		return c.Conn.RemoteAddr()
	}
	return address{c.Conn.RemoteAddr(), c.inner}
}

func (c *prefacedConn) Read(p []byte) (int, error) {
	if c.unread == nil {
		return c.Conn.Read(p)
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil
	}
	return n, nil
}

// Services registers services whose methods reject compressed messages before reading them. A small compressed
// message can expand to a huge one, and this project's clients do not compress. A compressor that any
// package of the process registers, as etcd does, is active for every gRPC server.
type Services struct {
	*grpc.Server
	// Admit, if set, returns an error to reject a unary call before its request is read. An
	// interceptor runs only after gRPC has read the request.
	Admit func(context.Context) error
}

// RegisterService registers a service.
func (s Services) RegisterService(service *grpc.ServiceDesc, implementation any) {
	guarded := *service
	guarded.Methods = make([]grpc.MethodDesc, len(service.Methods))
	for i, m := range service.Methods {
		next := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			if err := s.admit(ctx); err != nil {
				return nil, err
			}
			return next(srv, ctx, decode, interceptor)
		}
		guarded.Methods[i] = m
	}
	guarded.Streams = make([]grpc.StreamDesc, len(service.Streams))
	for i, d := range service.Streams {
		next := d.Handler
		d.Handler = func(srv any, stream grpc.ServerStream) error {
			if err := rejectCompressed(stream.Context()); err != nil {
				return err
			}
			return next(srv, stream)
		}
		guarded.Streams[i] = d
	}
	s.Server.RegisterService(&guarded, implementation)
}

func (s Services) admit(ctx context.Context) error {
	if s.Admit != nil {
		if err := s.Admit(ctx); err != nil {
			return err
		}
	}
	return rejectCompressed(ctx)
}

// rejectCompressed returns an error if the messages of a call are compressed. Taps and interceptors of gRPC
// do not get the compression header, so this depends on an unexported type; if that
// changes, all calls are rejected.
func rejectCompressed(ctx context.Context) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok {
		return status.Error(codes.Internal, "call rejected: the compression of its messages is unknown")
	}
	if name := stream.RecvCompress(); name != "" && name != encoding.Identity {
		return status.Errorf(codes.Unimplemented, "call rejected: its messages are compressed with %q; send them uncompressed", name)
	}
	return nil
}

// Serve serves HTTP with connection limits, over TLS if the server has a TLSConfig, until the server is closed. It
// returns the result of [http.Server.Serve]. It wraps the server's ConnState.
//
// The header of a connection's first request must be complete within [Config.HandshakeTimeout]. The server's
// ReadHeaderTimeout limits later requests.
func Serve(server *http.Server, listener net.Listener, cfg Config) error {
	next := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateActive || state == http.StateHijacked {
			establish(c)
		}
		if next != nil {
			next(c, state)
		}
	}
	limited := open(listener, cfg, true)
	defer limited.Close() //nolint:errcheck // the server has closed it
	if server.TLSConfig != nil {
		return server.ServeTLS(limited, "", "")
	}
	return server.Serve(limited)
}
