//go:build linux

package attacks

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const health = "/grpc.health.v1.Health/"

// dialHTTP2 connects as a party, and sends the HTTP/2 preface.
func (c *testbed) dialHTTP2(t *testing.T, party string) *rawClient {
	t.Helper()
	r := newRawClient(t, c.connect(t, party))
	r.sendPreface()
	return r
}

// TestFloods: requests above a limit are refused, and other clients are not affected.
func TestFloods(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	wants := func(t *testing.T, r *rawClient, stream uint32, want string) {
		t.Helper()
		if got := r.outcome(stream); !oneOf(got, want) {
			t.Errorf("outcome: %s; want %s", got, want)
		}
	}
	c.attack(t, "calls of one identity", func(t *testing.T) {
		// The limit is a burst of 5,000 and 200 a second. One connection alone is
		// throttled below it.
		var all []*rawClient
		for range 20 {
			all = append(all, c.dialHTTP2(t, "lookup/other"))
		}
		got, stream := "", uint32(1)
		for begun := time.Now(); !oneOf(got, "status 8 |closed") && time.Since(begun) < eventTimeout/2; stream += 2 {
			for _, r := range all {
				next := stream
				for ; next < stream+2*500; next += 2 {
					r.open(next, head(getStatus))
					_ = r.WriteRSTStream(next, http2.ErrCodeCancel)
				}
				r.flush()
			}
			stream += 2 * 500
			for _, r := range all {
				r.open(stream, head(getStatus))
				r.send(stream, &leaseholdv1.GetStatusRequest{Version: wire.Version})
				_ = r.WriteData(stream, true, nil)
				if got = r.outcome(stream); oneOf(got, "status 8 |closed") { // the calls before were refused
					break
				}
			}
		}
		if !oneOf(got, "status 8 |closed") {
			t.Errorf("%d calls on each connection, outcome: %s", stream/2, got)
		}
		c.wantAudited(t, "spiffe://attacks.test/lookup/other", getStatus, "exceeds 200 calls per second")
	})
	c.attack(t, "calls on one connection", func(t *testing.T) {
		r, begun := c.dialHTTP2(t, "operator/landlord"), time.Now()
		const calls = 3000
		for i := range uint32(calls) {
			if r.open(2*i+1, head(getStatus)); i < calls-1 {
				_ = r.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
			}
		}
		r.send(2*calls-1, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		_ = r.WriteData(2*calls-1, true, nil)
		wants(t, r, 2*calls-1, "status 0 ")
		if took := time.Since(begun); took < 2*time.Second {
			t.Errorf("%d calls were served in %v: a connection is not throttled", calls, took)
		}
	})
	c.attack(t, "messages on one stream", func(t *testing.T) {
		r := c.dialHTTP2(t, "owner/other/mallory")
		r.open(1, head(follow))
		for i := range uint64(3000) {
			r.send(1, &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: other, Seq: i + 1})
		}
		wants(t, r, 1, "status 8 |reset FLOW_CONTROL_ERROR")
		c.wantAudited(t, mallory, follow, "exceeds 250 messages per second")
	})
	c.attack(t, "health checks without credentials", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		for i := range uint32(200) {
			r.open(2*i+1, head(health+"Check"))
			r.sendMessage(2*i+1, nil)
			_ = r.WriteData(2*i+1, true, nil)
		}
		wants(t, r, 2*200-1, "status 8 ")
	})
	c.attack(t, "streams without credentials", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		for i := range uint32(400) {
			r.open(2*i+1, head(health+"Watch"))
			r.sendMessage(2*i+1, nil)
			_ = r.WriteData(2*i+1, true, nil)
		}
		wants(t, r, 2*400-1, "status 8 |closed")
	})
	c.attack(t, "endless requests without credentials, with a timeout of an hour", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		body := message(0, 4<<20-1, make([]byte, 16<<10-5))
		for i := range uint32(4000) {
			r.open(2*i+1, head(getStatus, "grpc-timeout", "1H"))
			for range 3 {
				_ = r.WriteData(2*i+1, false, body)
			}
		}
		wants(t, r, 2*4000-1, "status 16 |closed")
	})
	c.attack(t, "calls without credentials, with a timeout of years", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		for i := range uint32(20_000) {
			r.open(2*i+1, head(drain, "grpc-timeout", "99999999H"))
		}
		wants(t, r, 2*20_000-1, "status 16 |reset REFUSED_STREAM|closed")
	})
	c.attack(t, "streams without credentials, of a protected method", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		for i := range uint32(20_000) {
			r.open(2*i+1, head(hold))
		}
		wants(t, r, 2*20_000-1, "status 16 |closed")
	})
	c.attack(t, "large headers without credentials", func(t *testing.T) {
		r := c.dialHTTP2(t, "")
		for i := range uint32(2000) {
			r.open(2*i+1, head(hold, "authorization", "Bearer "+strings.Repeat("x", 12<<10)))
		}
		wants(t, r, 2*2000-1, "status 16 |closed")
	})
	c.attack(t, "connections of one identity", func(t *testing.T) {
		for range 300 {
			r := c.dialHTTP2(t, "owner/other/mallory")
			r.flush()
			if f, err := r.ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
				t.Fatalf("received %v, %v", f, err)
			}
		}
	})
	c.attack(t, "sequential handshakes without credentials", func(t *testing.T) {
		for range 300 {
			stranger := k.clientTLS(nil, "h2")
			stranger.MaxVersion = 0x0303
			if got := handshake(t, c.addr, stranger); got != "protocol version not supported" {
				t.Fatalf("outcome: %s", got)
			}
		}
	})
}
