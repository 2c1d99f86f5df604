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

// The methods that are attacked: one of each kind that is open for long, and one that is not.
const (
	hold   = leaseholdv1.OwnerService_Hold_FullMethodName
	follow = leaseholdv1.LookupService_Follow_FullMethodName
	asking = leaseholdv1.AdminService_GetStatus_FullMethodName
)

// What a frame case may cost at most. Garbage is not collected at once.
const frameCost = 64 * mebibyte

// A frameCase is something that one connection does, and what comes of it.
type frameCase struct {
	name   string
	do     func(r *rogue)
	stream uint32 // whose outcome counts; 1 if it is 0
	want   string // how that begins; several may be right
	known  string // the same where the policy has a say first; "": no other
	plain  bool   // only where there is no policy
	cost   int64  // what it may cost the manager, in bytes; as usual if it is 0
}

// greeted are cases of those that introduce themselves as they should.
func greeted() []frameCase {
	return []frameCase{
		{name: "a message that says to be a gigabyte", want: "status 8 ", do: func(r *rogue) {
			r.open(1, head(hold))
			_ = r.WriteData(1, false, message(0, 1<<30, []byte("x")))
		}},
		{name: "a message that says to be four gigabytes, to a method that is answered at once", want: "status 8 ", do: func(r *rogue) {
			r.open(1, head(asking))
			_ = r.WriteData(1, false, message(0, 1<<32-1, nil))
		}},
		{name: "a message that is a bomb, as gzip", want: `status 12 the messages are compressed, with "gzip"`, do: func(r *rogue) {
			r.open(1, head(asking, "grpc-encoding", "gzip"))
			r.bomb(1)
		}},
		{name: "a bomb on a stream", want: `status 12 the messages are compressed, with "gzip"`, do: func(r *rogue) {
			r.open(1, head(follow, "grpc-encoding", "gzip"))
			r.bomb(1)
		}},
		{name: "a bomb in a packing that nobody knows", want: "status 12 ", do: func(r *rogue) {
			r.open(1, head(hold, "grpc-encoding", "zstd"))
			r.bomb(1)
		}},
		{name: "a message that is compressed, and whose header does not say so", want: "status 13 ", do: func(r *rogue) {
			r.open(1, head(asking))
			r.bomb(1)
		}},
		{name: "rubbish for a message", want: "status 13 ", do: func(r *rogue) {
			r.open(1, head(hold))
			r.say(1, bytes.Repeat([]byte{0xff}, 1000))
		}},
		{name: "half a million empty leases, whatever the window", want: "status 13 |reset FLOW_CONTROL_ERROR", do: func(r *rogue) {
			r.open(1, head(hold))
			r.long(1, bytes.Repeat([]byte{8<<3 | 2, 0}, 1<<19))
		}},
		{name: "a version that there is not", want: "status 9 ", known: "status 7 ", do: func(r *rogue) {
			r.open(1, head(follow))
			r.send(1, &leaseholdv1.FollowRequest{Version: 1 << 30, Namespace: namespace})
		}},
		{name: "a name of 60,000 bytes", want: "status 3 ", known: "status 7 ", do: func(r *rogue) {
			r.open(1, head(follow))
			r.send(1, &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: strings.Repeat("n", 60_000)})
		}},
		{name: "a method that there is not", want: "status 12 ", do: func(r *rogue) { r.open(1, head("/leasehold.v1.OwnerService/Steal")) }},
		{name: "a path that is none", want: "status 12 ", do: func(r *rogue) { r.open(1, head("../../etc/passwd")) }},
		{name: "no path", want: "status 12 ", do: func(r *rogue) { r.open(1, head("")) }},
		{name: "GET", want: "status 13 ", do: func(r *rogue) {
			f := head(hold)
			f[1] = "GET"
			r.open(1, f)
		}},
		{name: "a form", want: "status 3 ", do: func(r *rogue) {
			f := head(hold)
			f[9] = "application/x-www-form-urlencoded"
			r.open(1, f)
		}},
		{name: "two hosts", want: "status 13 ", do: func(r *rogue) { r.open(1, head(hold, "host", "one", "host", "another")) }},
		{name: "two authorities", want: "reset PROTOCOL_ERROR", do: func(r *rogue) { r.open(1, head(hold, ":authority", "another")) }},
		{name: "a deadline that is none", want: "status 13 ", do: func(r *rogue) { r.open(1, head(hold, "grpc-timeout", "soon")) }},
		{name: "a header that does not belong into HTTP/2", want: "reset PROTOCOL_ERROR", do: func(r *rogue) { r.open(1, head(hold, "connection", "close")) }},
		{name: "headers that are too long", want: "reset ", do: func(r *rogue) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.packed(head(hold))})
			for _, name := range []string{"x", "y", "z"} {
				_ = r.WriteContinuation(1, name == "z", r.packed(fields{name, strings.Repeat("h", 15<<10)}))
			}
		}},
		{name: "headers that unpack to megabytes", want: "reset ", do: func(r *rogue) {
			f := head(hold)
			for range 10_000 {
				f = append(f, "bomb", strings.Repeat("b", 4000)) // a byte each, from the second on
			}
			r.open(1, f)
		}},
		{name: "headers that never end", want: "closed|goaway ", do: func(r *rogue) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.packed(head(hold))})
			for range 10_000 {
				_ = r.WriteContinuation(1, false, r.packed(fields{"x", strings.Repeat("h", 1000)}))
			}
		}},
		{name: "headers that are not packed as they should be", want: "closed|goaway COMPRESSION_ERROR", do: func(r *rogue) {
			_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndHeaders: true})
		}},
		{name: "a frame that is longer than allowed", want: "closed|goaway FRAME_SIZE_ERROR", do: func(r *rogue) {
			r.open(1, head(hold))
			_ = r.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20))
		}},
		{name: "a stream with an even number", want: "closed|goaway ", do: func(r *rogue) { r.open(2, head(hold)) }},
		{name: "a stream that comes again", want: "closed|goaway ", do: func(r *rogue) {
			r.open(3, head(hold))
			r.open(1, head(hold))
		}},
		{name: "data for a stream that was never opened", want: "alive", do: func(r *rogue) {
			for range 1000 {
				_ = r.WriteData(7, false, make([]byte, 1000))
			}
		}},
		{name: "more data than the window allows", want: "closed|reset FLOW_CONTROL_ERROR|goaway FLOW_CONTROL_ERROR|status 13 grpc: failed to unmarshal", do: func(r *rogue) {
			r.open(1, head(follow))
			_ = r.WriteData(1, false, message(0, 1<<22-1, make([]byte, 16<<10-5))) // the rest never ends
			for range 1000 {
				_ = r.WriteData(1, false, make([]byte, 16<<10))
			}
		}},
		{name: "a window that overflows", want: "alive|closed|goaway ", do: func(r *rogue) {
			r.open(1, head(follow))
			for range 3 {
				_ = r.WriteWindowUpdate(1, 1<<31-1)
				_ = r.WriteWindowUpdate(0, 1<<31-1)
			}
		}},
		{name: "pings without end", want: "goaway ENHANCE_YOUR_CALM too_many_pings", do: func(r *rogue) {
			for range 100_000 {
				_ = r.WritePing(false, [8]byte{})
			}
		}},
		{name: "settings without end", want: "alive", do: func(r *rogue) {
			for range 10_000 {
				_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16})
			}
		}},
		{name: "streams that are opened and reset", want: "alive", plain: true, do: func(r *rogue) {
			f := head(follow)
			for i := range uint32(20_000) {
				r.open(2*i+1, f)
				_ = r.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
			}
		}},
		{name: "more streams than a connection may have", stream: 2*9000 + 1, want: "reset REFUSED_STREAM", plain: true, cost: 128 * mebibyte, do: func(r *rogue) {
			f := head(hold)
			for i := range uint32(9001) {
				r.open(2*i+1, f)
			}
		}},
		{name: "questions without end, whose answers nobody takes", want: "alive", plain: true, do: func(r *rogue) {
			_ = r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			_ = r.WriteWindowUpdate(0, 1<<24) // of the connection: it is streams that are not read
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
		{name: "goodbye, again and again", want: "alive|closed|goaway ", do: func(r *rogue) {
			for range 1000 {
				_ = r.WriteGoAway(0, http2.ErrCodeNo, []byte(strings.Repeat("x", 1000)))
			}
		}},
		{name: "priorities without end", want: "alive", do: func(r *rogue) {
			for i := range uint32(50_000) {
				_ = r.WritePriority(2*i+1, http2.PriorityParam{StreamDep: 1})
			}
		}},
		{name: "frames of a kind that there is not", want: "alive", do: func(r *rogue) {
			for range 10_000 {
				_ = r.WriteRawFrame(0xbe, 0xff, 0, []byte("what?"))
			}
		}},
		{name: "a server's frame", want: "alive|closed|goaway ", do: func(r *rogue) {
			_ = r.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: r.packed(head(hold)), EndHeaders: true})
		}},
	}
}

// strange are cases of those that do not.
func strange() []frameCase {
	say := func(what string) func(r *rogue) { return func(r *rogue) { _, _ = r.Write([]byte(what)) } }
	return []frameCase{
		{name: "HTTP/1.1", want: "closed", do: say("GET / HTTP/1.1\r\nHost: manager\r\n\r\n")},
		{name: "a request for another protocol", want: "closed", do: say("GET / HTTP/1.1\r\nHost: manager\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")},
		{name: "ssh", want: "closed", do: say("SSH-2.0-OpenSSH_9.9\r\n" + strings.Repeat("\x00", 100))},
		{name: "zeros", want: "closed", do: say(strings.Repeat("\x00", 1<<20))},
		{name: "a preface, and headers at once", want: "closed", do: func(r *rogue) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			r.open(1, head(hold))
		}},
		{name: "a preface, and settings that are too long", want: "closed", do: func(r *rogue) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			_ = r.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 6000))
		}},
		{name: "a preface, and settings of a length that there is not", want: "closed|goaway ", do: func(r *rogue) {
			_, _ = r.Write([]byte(http2.ClientPreface))
			_ = r.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 7))
		}},
	}
}

// One connection cannot do anything that others notice, whatever it says.
func TestFrames(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{})
	for _, test := range strange() {
		t.Run(test.name, func(t *testing.T) { c.withstand(t, test, false) })
	}
	for _, test := range greeted() {
		t.Run(test.name, func(t *testing.T) { c.withstand(t, test, true) })
	}
}

// Whoever is known, and may do something somewhere, can do no more.
func TestFramesOverTLS(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{secured: newKeep(t)})
	for _, test := range greeted() {
		if test.plain {
			continue // there a connection takes turns: TestFloods has what becomes of it
		}
		test.want = cmp.Or(test.known, test.want)
		t.Run(test.name, func(t *testing.T) { c.withstand(t, test, true) })
	}
}

// withstand tries a case.
func (c *castle) withstand(t *testing.T, test frameCase, greets bool) {
	t.Helper()
	c.count()
	c.during(t, cmp.Or(test.cost, frameCost), func() {
		r := newRogue(t, c.connect(t, "owner/other/mallory"))
		if greets {
			r.greet()
		}
		test.do(r)
		test.expect(t, r)
	})
}

// connect connects as somebody, or as nobody if there is no name.
func (c *castle) connect(t *testing.T, party string) net.Conn {
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
	return tls.Client(conn, c.secured.showing(cert, "h2"))
}

// expect sees what comes of a case. Several outcomes may be right; "alive" is one that
// can still ask for the status after it.
func (f frameCase) expect(t *testing.T, r *rogue) {
	t.Helper()
	var got string
	if strings.HasPrefix(f.want, "alive") {
		const last = 1<<20 + 1
		r.open(last, head(asking))
		r.send(last, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		_ = r.WriteData(last, true, nil)
		if got = r.outcome(last); strings.HasPrefix(got, "status 0 ") {
			got = "alive"
		}
	} else {
		got = r.outcome(max(f.stream, 1))
	}
	if !oneOf(got, f.want) {
		t.Errorf("what comes of it: %s; want %s", got, f.want)
	}
}
