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

// greeting connects as somebody, and greets.
func (c *castle) greeting(t *testing.T, party string) *rogue {
	t.Helper()
	r := newRogue(t, c.connect(t, party))
	r.greet()
	return r
}

// Whoever asks too much is refused what is too much, and keeps nobody else from anything.
func TestFloods(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	wants := func(t *testing.T, r *rogue, stream uint32, want string) {
		t.Helper()
		if got := r.outcome(stream); !oneOf(got, want) {
			t.Errorf("what comes of it: %s; want %s", got, want)
		}
	}
	c.attack(t, "calls of one identity", func(t *testing.T) {
		// It has 5,000 to begin with, and 200 more in each second that this takes. One
		// connection takes turns, and would take no more than those.
		var all []*rogue
		for range 20 {
			all = append(all, c.greeting(t, "lookup/other"))
		}
		got, stream := "", uint32(1)
		for begun := time.Now(); !oneOf(got, "status 8 |closed") && time.Since(begun) < patience/2; stream += 2 {
			for _, r := range all {
				next := stream
				for ; next < stream+2*500; next += 2 {
					r.open(next, head(asking))
					_ = r.WriteRSTStream(next, http2.ErrCodeCancel)
				}
				r.flush()
			}
			stream += 2 * 500
			for _, r := range all {
				r.open(stream, head(asking))
				r.send(stream, &leaseholdv1.GetStatusRequest{Version: wire.Version})
				_ = r.WriteData(stream, true, nil)
				if got = r.outcome(stream); oneOf(got, "status 8 |closed") { // those before have been refused
					break
				}
			}
		}
		if !oneOf(got, "status 8 |closed") {
			t.Errorf("what comes of %d calls on each connection: %s", stream/2, got)
		}
		c.wantRefusal(t, "spiffe://siege.test/lookup/other", asking, "exceeds 200 calls per second")
	})
	c.attack(t, "calls on one connection", func(t *testing.T) {
		r, begun := c.greeting(t, "operator/landlord"), time.Now()
		const calls = 3000
		for i := range uint32(calls) {
			if r.open(2*i+1, head(asking)); i < calls-1 {
				_ = r.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
			}
		}
		r.send(2*calls-1, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		_ = r.WriteData(2*calls-1, true, nil)
		wants(t, r, 2*calls-1, "status 0 ")
		if took := time.Since(begun); took < 2*time.Second {
			t.Errorf("%d calls were answered within %v: others have had no turn", calls, took)
		}
	})
	c.attack(t, "messages on one stream", func(t *testing.T) {
		r := c.greeting(t, "owner/other/mallory")
		r.open(1, head(follow))
		for i := range uint64(3000) {
			r.send(1, &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: other, Seq: i + 1})
		}
		wants(t, r, 1, "status 8 |reset FLOW_CONTROL_ERROR")
		c.wantRefusal(t, mallory, follow, "exceeds 250 messages per second")
	})
	c.attack(t, "health checks of nobody", func(t *testing.T) {
		r := c.greeting(t, "")
		for i := range uint32(200) {
			r.open(2*i+1, head(health+"Check"))
			r.say(2*i+1, nil)
			_ = r.WriteData(2*i+1, true, nil)
		}
		wants(t, r, 2*200-1, "status 8 ")
	})
	c.attack(t, "streams of nobody", func(t *testing.T) {
		r := c.greeting(t, "")
		for i := range uint32(400) {
			r.open(2*i+1, head(health+"Watch"))
			r.say(2*i+1, nil)
			_ = r.WriteData(2*i+1, true, nil)
		}
		wants(t, r, 2*400-1, "status 8 |closed")
	})
	c.attack(t, "requests of nobody that never end, with an hour's time", func(t *testing.T) {
		r := c.greeting(t, "")
		body := message(0, 4<<20-1, make([]byte, 16<<10-5))
		for i := range uint32(4000) {
			r.open(2*i+1, head(asking, "grpc-timeout", "1H"))
			for range 3 {
				_ = r.WriteData(2*i+1, false, body)
			}
		}
		wants(t, r, 2*4000-1, "status 16 |closed")
	})
	c.attack(t, "calls of nobody, with years of time", func(t *testing.T) {
		r := c.greeting(t, "")
		for i := range uint32(20_000) {
			r.open(2*i+1, head(drain, "grpc-timeout", "99999999H"))
		}
		wants(t, r, 2*20_000-1, "status 16 |reset REFUSED_STREAM|closed")
	})
	c.attack(t, "streams of nobody that ask for what they may not", func(t *testing.T) {
		r := c.greeting(t, "")
		for i := range uint32(20_000) {
			r.open(2*i+1, head(hold))
		}
		wants(t, r, 2*20_000-1, "status 16 |closed")
	})
	c.attack(t, "headers that are large, of nobody", func(t *testing.T) {
		r := c.greeting(t, "")
		for i := range uint32(2000) {
			r.open(2*i+1, head(hold, "authorization", "Bearer "+strings.Repeat("x", 12<<10)))
		}
		wants(t, r, 2*2000-1, "status 16 |closed")
	})
	c.attack(t, "connections of one identity", func(t *testing.T) {
		for range 300 {
			r := c.greeting(t, "owner/other/mallory")
			r.flush()
			if f, err := r.ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
				t.Fatalf("it hears %v, %v", f, err)
			}
		}
	})
	c.attack(t, "handshakes of nobody, one after the other", func(t *testing.T) {
		for range 300 {
			stranger := k.showing(nil, "h2")
			stranger.MaxVersion = 0x0303
			if got := shake(t, c.addr, stranger); got != "protocol version not supported" {
				t.Fatalf("what comes of it: %s", got)
			}
		}
	})
}
