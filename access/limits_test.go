package access_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func limited(l access.Limits) func(*access.Config) {
	return func(c *access.Config) { c.Limits = l }
}

// permitted returns how many of a number of immediate calls succeed. The others must fail
// with ResourceExhausted.
func permitted(t *testing.T, calls int, call func() error) (served int) {
	t.Helper()
	for range calls {
		err := call()
		if err == nil {
			served++
			continue
		}
		wantCode(t, err, codes.ResourceExhausted)
	}
	return served
}

// An identity cannot exceed its rate of calls. Others are not affected, and the log has few
// lines about it.
func TestCallRateIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile, limited(access.Limits{Calls: 10, Burst: 20}))
		lookup, ann, manager := d.as("spiffe://d/lookup/sessions"), d.as("spiffe://d/operator/ann"), d.as("spiffe://d/manager/m1")
		ask := func(conn grpc.ClientConnInterface) func() error {
			return func() error { return listOwners(t.Context(), conn, "sessions") }
		}
		for _, test := range []struct {
			wait time.Duration
			want int
		}{{0, 20}, {0, 0}, {time.Second, 10}, {500 * time.Millisecond, 5}, {time.Minute, 20}} {
			time.Sleep(test.wait)
			if got := permitted(t, 100, ask(lookup)); got != test.want {
				t.Errorf("after %v %d calls succeeded, want %d", test.wait, got, test.want)
			}
		}
		// A call with a long timeout, which is denied after the tap, is limited, too.
		if got := permitted(t, 30, func() error { return listOwners(within(t, time.Hour), lookup, "sessions") }); got != 0 {
			t.Errorf("%d calls with a long timeout succeeded", got)
		}
		if got := permitted(t, 20, ask(ann)); got != 20 {
			t.Errorf("%d calls of another identity succeeded", got)
		}
		if got := permitted(t, 100, ask(manager)); got != 100 {
			t.Errorf("%d calls of a manager succeeded", got)
		}
		// A forwarded call is charged to its original caller.
		ctx := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
		if got := permitted(t, 10, func() error { return listOwners(ctx, manager, "sessions") }); got != 0 {
			t.Errorf("%d calls were forwarded and succeeded", got)
		}
		time.Sleep(time.Minute)
		if lines := d.log.Lines(`level=WARN msg="call denied" `, "calls per second"); len(lines) > 12 {
			t.Errorf("%d lines", len(lines))
		}
		if lines := d.log.Lines("further calls denied", "spiffe://d/lookup/sessions"); len(lines) == 0 || len(lines) > 3 {
			t.Errorf("the summaries are:\n%s", strings.Join(lines, ""))
		}
	})
}

func TestStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile, limited(access.Limits{Streams: 3}))
		conn := d.as("spiffe://d/owner/sessions/a")
		var open []*holdStream
		for range 3 {
			h := hold(t.Context(), t, conn)
			wantCode(t, h.exchange("sessions", "a"), codes.OK)
			open = append(open, h)
		}
		wantCode(t, hold(t.Context(), t, conn).exchange("sessions", "a"), codes.ResourceExhausted, "3 open streams")
		wantCode(t, hold(t.Context(), t, d.as("spiffe://d/owner/sessions/b")).exchange("sessions", "b"), codes.OK)
		if err := open[0].CloseSend(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantCode(t, hold(t.Context(), t, conn).exchange("sessions", "a"), codes.OK)
	})
}

// A stream that exceeds the rate of messages ends; one at the limit does not.
func TestMessageRateOfAStreamIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile, limited(access.Limits{Messages: 10}))
		conn := d.as("spiffe://d/owner/sessions/a")
		calm, flood := hold(t.Context(), t, conn), hold(t.Context(), t, conn)
		for range 1000 {
			wantCode(t, calm.exchange("sessions", "a"), codes.OK)
			time.Sleep(100 * time.Millisecond)
		}
		// The identity's limit throttles it to twice the rate, so that it ends a little later.
		var err error
		sent := 0
		for ; err == nil && sent < 100; sent++ {
			err = flood.exchange("sessions", "a")
		}
		wantCode(t, err, codes.ResourceExhausted, "10 messages per second")
		if sent < 20 || sent > 45 {
			t.Errorf("the stream ended after %d messages", sent)
		}
		wantCode(t, calm.exchange("sessions", "a"), codes.OK)
	})
}

// Messages of an identity that exceeds its rate on all streams together are delayed and not
// lost. Other identities are not affected.
func TestMessageRateOfAnIdentityIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile, limited(access.Limits{Messages: 50, All: 1}))
		conn := d.as("spiffe://d/owner/sessions/a")
		begun := time.Now()
		for range 10 {
			h := hold(t.Context(), t, conn)
			for range 20 {
				wantCode(t, h.exchange("sessions", "a"), codes.OK)
			}
		}
		if took := time.Since(begun); took != 1950*time.Millisecond {
			t.Errorf("200 messages at 100 per second with a burst of 5 took %v", took)
		}
		begun = time.Now()
		wantCode(t, hold(t.Context(), t, d.as("spiffe://d/owner/sessions/b")).exchange("sessions", "b"), codes.OK)
		if took := time.Since(begun); took != 0 {
			t.Errorf("another identity waited for %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		h := hold(ctx, t, conn)
		time.AfterFunc(time.Millisecond, cancel)
		wantCode(t, h.exchange("sessions", "a"), codes.Canceled) // the wait ends with the call
	})
}

// Anonymous health checks are limited by host.
func TestAnonymousCallsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		check := func(from string) func() error {
			client := grpc_health_v1.NewHealthClient(d.dial(&fakeCredentials{addr: textAddr(from)}))
			return func() error {
				_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				return err
			}
		}
		if got := permitted(t, 100, check("192.0.2.1:1")); got != 50 {
			t.Errorf("%d calls succeeded", got)
		}
		if got := permitted(t, 10, check("192.0.2.1:2")); got != 0 {
			t.Errorf("%d calls from another port succeeded", got)
		}
		if got := permitted(t, 10, check("192.0.2.2:1")); got != 10 {
			t.Errorf("%d calls from another host succeeded", got)
		}
		time.Sleep(time.Minute)
		if got := permitted(t, 100, check("192.0.2.1:3")); got != 50 {
			t.Errorf("%d calls succeeded later", got)
		}
	})
}

// Health checks need no valid credentials, and are not charged to a forged original caller.
func TestHealthIsPublic(t *testing.T) {
	d := newFixture(t, defaultFile, limited(access.Limits{Calls: 1, Burst: 20}))
	check := func(ctx context.Context, p *fakeCredentials) error {
		_, err := grpc_health_v1.NewHealthClient(d.dial(p)).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	wantCode(t, check(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer nonsense"), &fakeCredentials{}), codes.OK)
	wantCode(t, check(t.Context(), &fakeCredentials{ids: []string{"spiffe://d/x"}, unverified: true}), codes.OK)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
	for range 20 {
		wantCode(t, check(ctx, &fakeCredentials{ids: []string{"spiffe://d/lookup/sessions"}}), codes.OK)
	}
	wantCode(t, listOwners(t.Context(), d.as("spiffe://d/operator/ann"), "sessions"), codes.OK)
}

func TestInvalidLimits(t *testing.T) {
	d := newFixture(t, defaultFile)
	for _, l := range []access.Limits{{Calls: -1}, {Burst: -1}, {Streams: -1}, {Messages: -1}, {All: -1}} {
		if p, err := access.Open(access.Config{File: d.file, Limits: l}); err == nil {
			p.Close()
			t.Errorf("%+v is accepted", l)
		}
	}
}

// An identity cannot exceed its rate of bytes, in calls and on streams together. Others are
// not affected.
func TestByteRateIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile, limited(access.Limits{Bytes: 1000}))
		lookup, ann := d.as("spiffe://d/lookup/sessions"), d.as("spiffe://d/operator/ann")
		ask := func(conn grpc.ClientConnInterface) func() error {
			return func() error {
				r := &leaseholdv1.ListOwnersRequest{Namespace: "sessions"}
				r.ProtoReflect().SetUnknown(append(protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.BytesType), 900), make([]byte, 900)...))
				_, err := leaseholdv1.NewAdminServiceClient(conn).ListOwners(t.Context(), r)
				return err
			}
		}
		for _, test := range []struct {
			wait time.Duration
			want int
		}{{0, 4}, {time.Second, 1}, {time.Minute, 4}} {
			time.Sleep(test.wait)
			if got := permitted(t, 10, ask(lookup)); got != test.want {
				t.Errorf("after %v %d calls succeeded, want %d", test.wait, got, test.want)
			}
		}
		if got := permitted(t, 4, ask(ann)); got != 4 {
			t.Errorf("%d calls of another identity succeeded", got)
		}
		stream, err := leaseholdv1.NewLookupServiceClient(lookup).Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&leaseholdv1.FollowRequest{Namespace: "sessions"})
		_ = stream.Send(&leaseholdv1.FollowRequest{Namespace: "sessions" + strings.Repeat("x", 400)})
		for err == nil {
			_, err = stream.Recv()
		}
		wantCode(t, err, codes.ResourceExhausted, "bytes")
	})
}
