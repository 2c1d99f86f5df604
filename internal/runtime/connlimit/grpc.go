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

// Credentials are a server's credentials, for connections through a gate. They shake hands
// as the given ones do, and wait for the preface of HTTP/2 and the first SETTINGS. Only
// then does gRPC make its buffers, which are most of what a connection costs.
func Credentials(given credentials.TransportCredentials) credentials.TransportCredentials {
	return introducing{given, func(raw net.Conn, _ credentials.AuthInfo) error {
		introduce(raw)
		return nil
	}}
}

// introducing are credentials that call meet with every connection that has said how it
// begins.
type introducing struct {
	credentials.TransportCredentials
	meet func(raw net.Conn, who credentials.AuthInfo) error
}

func (i introducing) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	over, who, err := i.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	said, err := greeting(over)
	if err == nil {
		err = i.meet(raw, who)
	}
	if err != nil {
		_ = over.Close() // nothing was said that could be answered
		return nil, nil, err
	}
	return &greeted{Conn: over, said: said, ours: ours(raw)}, who, nil
}

func (i introducing) Clone() credentials.TransportCredentials {
	return introducing{i.TransportCredentials.Clone(), i.meet}
}

// A frame of HTTP/2 begins with its length, its type, its flags and its stream.
const (
	frameHeader = 9
	// maxSettings is how long the first SETTINGS may be. There are ten settings at the
	// time of writing, of six bytes each.
	maxSettings = 256
)

func greeting(from io.Reader) ([]byte, error) {
	said := make([]byte, len(http2.ClientPreface)+frameHeader)
	if _, err := io.ReadFull(from, said); err != nil {
		return nil, err
	}
	preface, header := said[:len(http2.ClientPreface)], said[len(http2.ClientPreface):]
	if !bytes.Equal(preface, []byte(http2.ClientPreface)) {
		return nil, fmt.Errorf("the connection does not begin as HTTP/2 does, but with %q", preface)
	}
	length := int(header[0])<<16 | int(header[1])<<8 | int(header[2])
	if kind := http2.FrameType(header[3]); kind != http2.FrameSettings || length > maxSettings {
		return nil, fmt.Errorf("HTTP/2 begins with a frame of type %v and %d bytes, want SETTINGS of at most %d", kind, length, maxSettings)
	}
	settings := make([]byte, length)
	if _, err := io.ReadFull(from, settings); err != nil {
		return nil, err
	}
	return slices.Concat(said, settings), nil
}

// A greeted connection repeats what was said to begin with. It has one reader at a time,
// as gRPC's do.
type greeted struct {
	net.Conn
	said []byte // nil once it was read
	ours *conn  // below; nil if it has come through no gate
}

// RemoteAddr is where the peer is.
func (g *greeted) RemoteAddr() net.Addr {
	if g.ours == nil {
		return g.Conn.RemoteAddr()
	}
	return address{g.Conn.RemoteAddr(), g.ours}
}

func (g *greeted) Read(p []byte) (int, error) {
	if g.said == nil {
		return g.Conn.Read(p)
	}
	n := copy(p, g.said)
	if g.said = g.said[n:]; len(g.said) == 0 {
		g.said = nil
	}
	return n, nil
}

// Services is a gRPC server to register services with, whose methods refuse messages that
// are compressed before they read one. A few bytes can be made to become many, and we use
// no compression; but whatever in the process registers a compressor, as etcd does,
// registers it for every server.
type Services struct {
	*grpc.Server
	// Admit, if set, says why a call of one request and one answer is refused unread. gRPC
	// has read the request by the time that it asks an interceptor.
	Admit func(context.Context) error
}

// RegisterService registers a service.
func (s Services) RegisterService(service *grpc.ServiceDesc, implementation any) {
	guarded := *service
	guarded.Methods = make([]grpc.MethodDesc, len(service.Methods))
	for i, m := range service.Methods {
		next := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			if err := s.unread(ctx); err != nil {
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
			if err := uncompressed(stream.Context()); err != nil {
				return err
			}
			return next(srv, stream)
		}
		guarded.Streams[i] = d
	}
	s.Server.RegisterService(&guarded, implementation)
}

func (s Services) unread(ctx context.Context) error {
	if s.Admit != nil {
		if err := s.Admit(ctx); err != nil {
			return err
		}
	}
	return uncompressed(ctx)
}

// uncompressed refuses a call whose messages are compressed. gRPC does not show to taps
// and interceptors what the header says of it, so that its stream is asked; if that should
// not know one day, nothing is let in.
func uncompressed(ctx context.Context) error {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok {
		return status.Error(codes.Internal, "whether the message is compressed cannot be found out, and it would be refused")
	}
	if how := stream.RecvCompress(); how != "" && how != encoding.Identity {
		return status.Errorf(codes.Unimplemented, "the messages are compressed, with %q: send them as they are", how)
	}
	return nil
}

// Serve serves HTTP behind a gate, over TLS if the server has a TLSConfig, until the
// server is closed. It returns what [http.Server.Serve] returns. The server's ConnState is
// called as usual.
//
// The header of a connection's first request must be complete within [Config.Wait]. That
// of the following ones is the business of the server's ReadHeaderTimeout.
func Serve(server *http.Server, listener net.Listener, cfg Config) error {
	next := server.ConnState
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateActive || state == http.StateHijacked {
			introduce(c)
		}
		if next != nil {
			next(c, state)
		}
	}
	gate := open(listener, cfg, true)
	defer gate.Close() //nolint:errcheck // the server has closed it
	if server.TLSConfig != nil {
		return server.ServeTLS(gate, "", "")
	}
	return server.Serve(gate)
}
