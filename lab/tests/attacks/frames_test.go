//go:build linux

package attacks

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"golang.org/x/net/http2"
)

// The methods under attack: both kinds of streams, and a unary call.
const (
	hold      = leaseholdv1.OwnerService_Hold_FullMethodName
	follow    = leaseholdv1.LookupService_Follow_FullMethodName
	getStatus = leaseholdv1.AdminService_GetStatus_FullMethodName
)

// frameCost bounds the manager's memory growth in a frame case, garbage included.
const frameCost = 64 * mebibyte

// A frameCase is the input of one connection and its expected outcome.
type frameCase struct {
	name   string
	do     func(r *rawClient)
	stream uint32 // whose outcome is checked; 0: 1
	want   string // prefix of the outcome, or several separated by "|"
	known  string // the same if a policy checks first; "": the same as want
	plain  bool   // only without a policy
	cost   int64  // memory bound in bytes; 0: frameCost
}

// streamCases are sent after a valid HTTP/2 preface.
func streamCases() []frameCase {
	return []frameCase{
		{name: "a message with a length of a gigabyte", want: "status 8 ", do: func(r *rawClient) {
			r.open(1, head(hold))
			_ = r.WriteData(1, false, message(0, 1<<30, []byte("x")))
		}},
		{name: "a message with a length of four gigabytes, unary", want: "status 8 ", do: func(r *rawClient) {
			r.open(1, head(getStatus))
			_ = r.WriteData(1, false, message(0, 1<<32-1, nil))
		}},
		{name: "a compression bomb, unary", want: `status 12 call rejected: its messages are compressed with "gzip"`, do: func(r *rawClient) {
			r.open(1, head(getStatus, "grpc-encoding", "gzip"))
			r.bomb(1)
		}},
		{name: "a compression bomb on a stream", want: `status 12 call rejected: its messages are compressed with "gzip"`, do: func(r *rawClient) {
			r.open(1, head(follow, "grpc-encoding", "gzip"))
			r.bomb(1)
		}},
		{name: "a compression bomb with an unknown encoding", want: "status 12 ", do: func(r *rawClient) {
			r.open(1, head(hold, "grpc-encoding", "zstd"))
			r.bomb(1)
		}},
		{name: "a compressed message without an encoding header", want: "status 13 ", do: func(r *rawClient) {
			r.open(1, head(getStatus))
			r.bomb(1)
		}},
		{name: "a malformed message", want: "status 13 ", do: func(r *rawClient) {
			r.open(1, head(hold))
			r.sendMessage(1, bytes.Repeat([]byte{0xff}, 1000))
		}},
		{name: "half a million empty leases, beyond the window", want: "status 13 |reset FLOW_CONTROL_ERROR", do: func(r *rawClient) {
			r.open(1, head(hold))
			r.sendFragmented(1, bytes.Repeat([]byte{8<<3 | 2, 0}, 1<<19))
		}},
		{name: "an unknown version", want: "status 9 ", known: "status 7 ", do: func(r *rawClient) {
			r.open(1, head(follow))
			r.send(1, &leaseholdv1.FollowRequest{Version: 1 << 30, Namespace: namespace})
		}},
		{name: "a name of 60,000 bytes", want: "status 3 ", known: "status 7 ", do: func(r *rawClient) {
			r.open(1, head(follow))
			r.send(1, &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: strings.Repeat("n", 60_000)})
		}},
		{name: "an unknown method", want: "status 12 ", do: func(r *rawClient) { r.open(1, head("/leasehold.v1.OwnerService/Steal")) }},
		{name: "a malformed path", want: "status 12 ", do: func(r *rawClient) { r.open(1, head("../../etc/passwd")) }},
		{name: "no path", want: "status 12 ", do: func(r *rawClient) { r.open(1, head("")) }},
		{name: "GET", want: "status 13 ", do: func(r *rawClient) {
			f := head(hold)
			f[1] = "GET"
			r.open(1, f)
		}},
		{name: "a form", want: "status 3 ", do: func(r *rawClient) {
			f := head(hold)
			f[9] = "application/x-www-form-urlencoded"
			r.open(1, f)
		}},
		{name: "two hosts", want: "status 13 ", do: func(r *rawClient) { r.open(1, head(hold, "host", "one", "host", "another")) }},
		{name: "two authorities", want: "reset PROTOCOL_ERROR", do: func(r *rawClient) { r.open(1, head(hold, ":authority", "another")) }},
		{name: "a malformed timeout", want: "status 13 ", do: func(r *rawClient) { r.open(1, head(hold, "grpc-timeout", "soon")) }},
		{name: "a header that HTTP/2 forbids", want: "reset PROTOCOL_ERROR", do: func(r *rawClient) { r.open(1, head(hold, "connection", "close")) }},
		{name: "oversized headers", want: "reset ", do: func(r *rawClient) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.encodeHeaders(head(hold))})
			for _, name := range []string{"x", "y", "z"} {
				_ = r.WriteContinuation(1, name == "z", r.encodeHeaders(fields{name, strings.Repeat("h", 15<<10)}))
			}
		}},
		{name: "an HPACK bomb", want: "reset ", do: func(r *rawClient) {
			f := head(hold)
			for range 10_000 {
				f = append(f, "bomb", strings.Repeat("b", 4000)) // a byte each, from the second on
			}
			r.open(1, f)
		}},
		{name: "endless headers", want: "closed|goaway ", do: func(r *rawClient) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.encodeHeaders(head(hold))})
			for range 10_000 {
				_ = r.WriteContinuation(1, false, r.encodeHeaders(fields{"x", strings.Repeat("h", 1000)}))
			}
		}},
		{name: "malformed HPACK", want: "closed|goaway COMPRESSION_ERROR", do: func(r *rawClient) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndHeaders: true})
		}},
		{name: "an oversized frame", want: "closed|goaway FRAME_SIZE_ERROR", do: func(r *rawClient) {
			r.open(1, head(hold))
			_ = r.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20))
		}},
		{name: "a stream with an even number", want: "closed|goaway ", do: func(r *rawClient) { r.open(2, head(hold)) }},
		{name: "a stream number below the last", want: "closed|goaway ", do: func(r *rawClient) {
			r.open(3, head(hold))
			r.open(1, head(hold))
		}},
		{name: "data for an idle stream", want: "alive", do: func(r *rawClient) {
			for range 1000 {
				_ = r.WriteData(7, false, make([]byte, 1000))
			}
		}},
		{name: "more data than the window allows", want: "closed|reset FLOW_CONTROL_ERROR|goaway FLOW_CONTROL_ERROR|status 13 grpc: failed to unmarshal", do: func(r *rawClient) {
			r.open(1, head(follow))
			_ = r.WriteData(1, false, message(0, 1<<22-1, make([]byte, 16<<10-5))) // longer than the window
			for range 1000 {
				_ = r.WriteData(1, false, make([]byte, 16<<10))
			}
		}},
		{name: "a window that overflows", want: "alive|closed|goaway ", do: func(r *rawClient) {
			r.open(1, head(follow))
			for range 3 {
				_ = r.WriteWindowUpdate(1, 1<<31-1)
				_ = r.WriteWindowUpdate(0, 1<<31-1)
			}
		}},
		{name: "a ping flood", want: "goaway ENHANCE_YOUR_CALM too_many_pings", do: func(r *rawClient) {
			for range 100_000 {
				_ = r.WritePing(false, [8]byte{})
			}
		}},
		{name: "a settings flood", want: "alive", do: func(r *rawClient) {
			for range 10_000 {
				_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16})
			}
		}},
		{name: "rapid reset", want: "alive", plain: true, do: func(r *rawClient) {
			f := head(follow)
			for i := range uint32(20_000) {
				r.open(2*i+1, f)
				_ = r.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
			}
		}},
		{name: "more streams than the limit of a connection", stream: 2*9000 + 1, want: "reset REFUSED_STREAM", plain: true, cost: 128 * mebibyte, do: func(r *rawClient) {
			f := head(hold)
			for i := range uint32(9001) {
				r.open(2*i+1, f)
			}
		}},
		{name: "requests whose replies are not read", want: "alive", plain: true, do: func(r *rawClient) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			_ = r.WriteWindowUpdate(0, 1<<24) // of the connection: the stream windows stay closed
			for i := range uint32(100) {
				r.open(2*i+1, head(follow))
			}
			for seq := range uint64(200) {
				for i := range uint32(100) {
					r.send(2*i+1, &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: namespace, Seq: seq + 1})
				}
			}
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16})
		}},
		{name: "a GOAWAY flood", want: "alive|closed|goaway ", do: func(r *rawClient) {
			for range 1000 {
				_ = r.WriteGoAway(0, http2.ErrCodeNo, []byte(strings.Repeat("x", 1000)))
			}
		}},
		{name: "a priority flood", want: "alive", do: func(r *rawClient) {
			for i := range uint32(50_000) {
				_ = r.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 1})
			}
		}},
		{name: "frames of an unknown type", want: "alive", do: func(r *rawClient) {
			for range 10_000 {
				_ = r.WriteRawFrame(0xbe, 0xff, 0, []byte("what?"))
			}
		}},
		{name: "a push promise from the client", want: "alive|closed|goaway ", do: func(r *rawClient) {
			_ = r.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: r.encodeHeaders(head(hold)), EndHeaders: true})
		}},
	}
}

// connectionCases are sent without a valid HTTP/2 preface.
func connectionCases() []frameCase {
	sendMessage := func(what string) func(r *rawClient) { return func(r *rawClient) { _, _ = r.Write([]byte(what)) } }
	return []frameCase{
		{name: "HTTP/1.1", want: "closed", do: sendMessage("GET / HTTP/1.1\r\nHost: manager\r\n\r\n")},
		{name: "a protocol upgrade", want: "closed", do: sendMessage("GET / HTTP/1.1\r\nHost: manager\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")},
		{name: "ssh", want: "closed", do: sendMessage("SSH-2.0-OpenSSH_9.9\r\n" + strings.Repeat("\x00", 100))},
		{name: "zeros", want: "closed", do: sendMessage(strings.Repeat("\x00", 1<<20))},
		{name: "a preface without settings", want: "closed", do: func(r *rawClient) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			r.open(1, head(hold))
		}},
		{name: "a preface with oversized settings", want: "closed", do: func(r *rawClient) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			_ = r.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 6000))
		}},
		{name: "a preface with settings of an invalid length", want: "closed|goaway ", do: func(r *rawClient) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			_ = r.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 7))
		}},
	}
}

// TestFrames: frames of one connection do not affect other clients.
func TestFrames(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{})
	for _, test := range connectionCases() {
		t.Run(test.name, func(t *testing.T) { c.runFrameCase(t, test, false) })
	}
	for _, test := range streamCases() {
		t.Run(test.name, func(t *testing.T) { c.runFrameCase(t, test, true) })
	}
}

// TestFramesOverTLS: the same for a client that is identified and has some permissions.
func TestFramesOverTLS(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{secured: newAuthority(t)})
	for _, test := range streamCases() {
		if test.plain {
			continue // a policy throttles the connection: see TestFloods
		}
		test.want = cmp.Or(test.known, test.want)
		t.Run(test.name, func(t *testing.T) { c.runFrameCase(t, test, true) })
	}
}

// runFrameCase runs a case.
func (c *testbed) runFrameCase(t *testing.T, test frameCase, greets bool) {
	t.Helper()
	c.count()
	c.check(t, cmp.Or(test.cost, frameCost), func() {
		r := newRawClient(t, c.connect(t, "owner/other/mallory"))
		if greets {
			r.sendPreface()
		}
		test.do(r)
		test.expect(t, r)
	})
}

// connect connects as a party, or without a certificate if party is empty.
func (c *testbed) connect(t *testing.T, party string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		t.Fatal(err)
	}
	if c.secured == nil {
		return conn
	}
	var cert *tls.Certificate
	if party != "" {
		cert = c.secured.certificate(t, party)
	}
	return tls.Client(conn, c.secured.clientTLS(cert, "h2"))
}

// expect checks the outcome of a case. "alive" means that a GetStatus call on the connection
// succeeds afterwards.
func (f frameCase) expect(t *testing.T, r *rawClient) {
	t.Helper()
	var got string
	if strings.HasPrefix(f.want, "alive") {
		const last = 1<<20 + 1
		r.open(last, head(getStatus))
		r.send(last, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		_ = r.WriteData(last, true, nil)
		if got = r.outcome(last); strings.HasPrefix(got, "status 0 ") {
			got = "alive"
		}
	} else {
		got = r.outcome(max(f.stream, 1))
	}
	if !oneOf(got, f.want) {
		t.Errorf("outcome: %s; want %s", got, f.want)
	}
}
