package access_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "google.golang.org/grpc/health/grpc_health_v1"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	_ "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	_ "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// aliceToken is the token whose hash [fixture.write] puts into the files.
const aliceToken = "leasehold_alice-0123456789"

// defaultFile gives each role to an identity, in the namespace sessions.
const defaultFile = `
rules:
  - identity: spiffe://d/manager/m1
    role: manager
    namespaces: ["*"]
  - identity: spiffe://d/owner/sessions/{name}
    role: owner
    namespaces: [sessions]
  - identity: spiffe://d/lookup/sessions
    role: lookup
    namespaces: [sessions]
  - identity: spiffe://d/operator/ann
    role: operator
    namespaces: [sessions]
  - identity: token:alice
    role: operator
    namespaces: ["*"]
tokens:
  - name: alice
    sha256: 37ccf03a27e0d8e9b4aa5be3bbdbc38b2b3ec9d1ee9ae2c0a0f2cf3af2a1b8b5
`

// A fixture is a policy and a server that uses it and has every method of all services.
// The methods return empty responses.
type fixture struct {
	t        testing.TB
	file     string
	policy   *access.Policy
	log      *logbook.Book
	listener *bufconn.Listener

	mu      sync.Mutex
	revoked map[string]bool // by identity
}

func newFixture(t testing.TB, text string, change ...func(*access.Config)) *fixture {
	t.Helper()
	return openFixture(t, text, false, change...)
}

// newGatedFixture has a listener of connlimit, which throttles connections.
func newGatedFixture(t testing.TB, text string, change ...func(*access.Config)) *fixture {
	t.Helper()
	return openFixture(t, text, true, change...)
}

func openFixture(t testing.TB, text string, gated bool, change ...func(*access.Config)) *fixture {
	t.Helper()
	d := &fixture{t: t, file: filepath.Join(t.TempDir(), "access.yaml"), log: &logbook.Book{}, revoked: make(map[string]bool)}
	d.write(text)
	cfg := access.Config{File: d.file, Revoked: d.isRevoked, Logger: d.log.Logger()}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if d.policy, err = access.Open(cfg); err != nil {
		t.Fatal(err)
	}
	d.listener = bufconn.Listen(1 << 20)
	var at net.Listener = d.listener
	var creds credentials.TransportCredentials = &fakeCredentials{}
	if gated {
		at, creds = connlimit.New(at, connlimit.Config{}), connlimit.Callers(creds)
	}
	server := grpc.NewServer(append(append(wire.ServerOptions(), d.policy.ServerOptions()...), grpc.Creds(creds), grpc.WaitForHandlers(true))...)
	for _, service := range services() {
		server.RegisterService(describe(service), nil)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(at) }) // until Stop
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
		d.policy.Close()
	})
	return d
}

func (d *fixture) write(text string) {
	d.t.Helper()
	text = strings.ReplaceAll(text, aliceHash, hashOf(aliceToken))
	if err := os.WriteFile(d.file+".new", []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(d.file+".new", d.file); err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) revoke(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revoked[id] = true
}

func (d *fixture) isRevoked(cert *x509.Certificate) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(cert.URIs) > 0 && d.revoked[cert.URIs[0].String()]
}

// as returns a connection with these identities; an anonymous one without.
func (d *fixture) as(ids ...string) *grpc.ClientConn {
	d.t.Helper()
	return d.dial(&fakeCredentials{ids: ids})
}

func (d *fixture) dial(p *fakeCredentials, options ...grpc.DialOption) *grpc.ClientConn {
	d.t.Helper()
	conn, err := grpc.NewClient("passthrough:///desk", append(append(wire.DialOptions(),
		grpc.WithTransportCredentials(p),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return d.listener.DialContext(ctx) }),
	), options...)...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// fakeCredentials send the client's identities, and the server accepts them as a
// certificate without verification. Package secure tests the real credentials.
type fakeCredentials struct {
	ids        []string
	unverified bool
	plain      bool // the security level of a plaintext connection
	addr       net.Addr
}

// claim returns the text that the client sends.
func (p *fakeCredentials) claim() string {
	out := strings.Join(p.ids, " ")
	if p.unverified {
		out = "unverified " + out
	}
	if p.plain {
		out = "plain " + out
	}
	if p.addr != nil {
		out = "from=" + p.addr.String() + " " + out
	}
	return out
}

func (p *fakeCredentials) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	claim := p.claim()
	_, err := conn.Write(append([]byte{byte(len(claim) >> 8), byte(len(claim))}, claim...))
	return conn, credentials.TLSInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, err
}

func (p *fakeCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, nil, err
	}
	claim := make([]byte, int(size[0])<<8|int(size[1]))
	if _, err := io.ReadFull(conn, claim); err != nil {
		return nil, nil, err
	}
	info := credentials.TLSInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1)}
	verified, shown := true, false
	for word := range strings.FieldsSeq(string(claim)) {
		if addr, ok := strings.CutPrefix(word, "from="); ok {
			conn = &movedConn{conn, addr}
			continue
		}
		switch word {
		case "unverified":
			verified = false
		case "plain":
			info.SecurityLevel = credentials.NoSecurity
		case "nameless":
			shown = true
		default:
			shown = true
			if host, ok := strings.CutPrefix(word, "dns:"); ok {
				leaf.DNSNames = append(leaf.DNSNames, host)
				continue
			}
			u, err := url.Parse(word)
			if err != nil {
				return nil, nil, err
			}
			leaf.URIs = append(leaf.URIs, u)
		}
	}
	if shown {
		info.State = tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		if verified {
			info.State.VerifiedChains = [][]*x509.Certificate{{leaf}}
		}
	}
	return conn, info, nil
}

func (p *fakeCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "papers"}
}
func (p *fakeCredentials) Clone() credentials.TransportCredentials { c := *p; return &c }
func (p *fakeCredentials) OverrideServerName(string) error         { return nil }

// A movedConn has another remote address.
type movedConn struct {
	net.Conn
	addr string
}

func (c *movedConn) RemoteAddr() net.Addr { return textAddr(c.addr) }

type textAddr string

func (textAddr) Network() string  { return "tcp" }
func (a textAddr) String() string { return string(a) }

// services returns all services that a manager may have: those of this module, and gRPC's
// own.
func services() (out []protoreflect.ServiceDescriptor) {
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			name := string(s.FullName())
			if name == "leasehold.v1.MoverService" { // served by owners
				continue
			}
			if strings.HasPrefix(name, "leasehold.") || strings.HasPrefix(name, "google.cloud.") || strings.HasPrefix(name, "grpc.") {
				out = append(out, s)
			}
		}
		return true
	})
	return out
}

func pathOf(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return kind.New().Interface()
}

// describe returns a service that replies to each message with an empty one.
func describe(s protoreflect.ServiceDescriptor) *grpc.ServiceDesc {
	out := &grpc.ServiceDesc{ServiceName: string(s.FullName()), HandlerType: nil}
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		if m.IsStreamingClient() || m.IsStreamingServer() {
			out.Streams = append(out.Streams, grpc.StreamDesc{
				StreamName: string(m.Name()), ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer(),
				Handler: func(_ any, stream grpc.ServerStream) error { return echo(m, stream) },
			})
			continue
		}
		out.Methods = append(out.Methods, grpc.MethodDesc{
			MethodName: string(m.Name()),
			Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
				in := newMessage(m.Input())
				if err := decode(in); err != nil {
					return nil, err
				}
				return intercept(ctx, in, &grpc.UnaryServerInfo{FullMethod: pathOf(m)}, func(context.Context, any) (any, error) {
					return newMessage(m.Output()), nil
				})
			},
		})
	}
	return out
}

// echo replies until the client closes the stream or the stream's context ends. Like the
// real service, reflection ignores the context. Watch sends one reply and waits for the
// context.
func echo(m protoreflect.MethodDescriptor, stream grpc.ServerStream) error {
	if m.Name() == "ServerReflectionInfo" {
		return answer(m, stream)
	}
	ended := make(chan error, 1)
	go func() { ended <- answer(m, stream) }()
	select {
	case err := <-ended:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

func answer(m protoreflect.MethodDescriptor, stream grpc.ServerStream) error {
	for {
		if err := stream.RecvMsg(newMessage(m.Input())); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(newMessage(m.Output())); err != nil {
			return err
		}
		if m.Name() == "Watch" {
			<-stream.Context().Done()
			return nil
		}
	}
}
