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

// permitted makes calls at once, and returns how many of them were served. The others
// were over the limit.
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

// Whoever calls too often is served as often as it may, others are not concerned,
// and it is told a few times.
func TestCallsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile, limited(access.Limits{Calls: 10, Burst: 20}))
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
				t.Errorf("after %v %d calls were served, want %d", test.wait, got, test.want)
			}
		}
		// So is one with a deadline far away, which the tap lets pass.
		if got := permitted(t, 30, func() error { return listOwners(within(t, time.Hour), lookup, "sessions") }); got != 0 {
			t.Errorf("%d calls with a deadline were served", got)
		}
		if got := permitted(t, 20, ask(ann)); got != 20 {
			t.Errorf("%d calls of another were served", got)
		}
		if got := permitted(t, 100, ask(manager)); got != 100 {
			t.Errorf("%d calls of a manager were served", got)
		}
		// What a manager passes on is its caller's.
		ctx := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
		if got := permitted(t, 10, func() error { return listOwners(ctx, manager, "sessions") }); got != 0 {
			t.Errorf("%d calls were served by way of a manager", got)
		}
		time.Sleep(time.Minute)
		if told := d.log.Lines("level=WARN msg=refused ", "calls in a second"); len(told) > 12 {
			t.Errorf("it is told %d times", len(told))
		}
		if told := d.log.Lines("refused again and again", "spiffe://d/lookup/sessions"); len(told) == 0 || len(told) > 3 {
			t.Errorf("the rest is told so:\n%s", strings.Join(told, ""))
		}
	})
}

func TestStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile, limited(access.Limits{Streams: 3}))
		conn := d.as("spiffe://d/owner/sessions/a")
		var open []*holding
		for range 3 {
			h := hold(t.Context(), t, conn)
			wantCode(t, h.say("sessions", "a"), codes.OK)
			open = append(open, h)
		}
		wantCode(t, hold(t.Context(), t, conn).say("sessions", "a"), codes.ResourceExhausted, "3 streams")
		wantCode(t, hold(t.Context(), t, d.as("spiffe://d/owner/sessions/b")).say("sessions", "b"), codes.OK)
		if err := open[0].CloseSend(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantCode(t, hold(t.Context(), t, conn).say("sessions", "a"), codes.OK)
	})
}

// A stream that is flooded ends; one that is not goes on, for as long as it likes.
func TestMessagesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile, limited(access.Limits{Messages: 10}))
		conn := d.as("spiffe://d/owner/sessions/a")
		calm, flood := hold(t.Context(), t, conn), hold(t.Context(), t, conn)
		for range 1000 {
			wantCode(t, calm.say("sessions", "a"), codes.OK)
			time.Sleep(100 * time.Millisecond)
		}
		// It is slowed down to twice as much as it may send, and so ends a little later.
		var err error
		said := 0
		for ; err == nil && said < 100; said++ {
			err = flood.say("sessions", "a")
		}
		wantCode(t, err, codes.ResourceExhausted, "10 messages in a second")
		if said < 20 || said > 45 {
			t.Errorf("it ends after %d messages", said)
		}
		wantCode(t, calm.say("sessions", "a"), codes.OK)
	})
}

// An identity that sends more than its share on many streams waits; others do not, and
// nothing that it sends is lost.
func TestAllMessagesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile, limited(access.Limits{Messages: 50, All: 1}))
		conn := d.as("spiffe://d/owner/sessions/a")
		begun := time.Now()
		for range 10 {
			h := hold(t.Context(), t, conn)
			for range 20 {
				wantCode(t, h.say("sessions", "a"), codes.OK)
			}
		}
		if took := time.Since(begun); took != 1950*time.Millisecond {
			t.Errorf("200 messages, of which 5 may come at once and 100 in a second, took %v", took)
		}
		begun = time.Now()
		wantCode(t, hold(t.Context(), t, d.as("spiffe://d/owner/sessions/b")).say("sessions", "b"), codes.OK)
		if took := time.Since(begun); took != 0 {
			t.Errorf("another waits for %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		h := hold(ctx, t, conn)
		time.AfterFunc(time.Millisecond, cancel)
		wantCode(t, h.say("sessions", "a"), codes.Canceled) // it waits no longer than its call lasts
	})
}

// Whom nobody knows may ask for the health, not too often, and each host for itself.
func TestStrangersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile)
		check := func(from string) func() error {
			client := grpc_health_v1.NewHealthClient(d.dial(&papers{addr: textAddr(from)}))
			return func() error {
				_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				return err
			}
		}
		if got := permitted(t, 100, check("192.0.2.1:1")); got != 50 {
			t.Errorf("%d calls were served", got)
		}
		if got := permitted(t, 10, check("192.0.2.1:2")); got != 0 {
			t.Errorf("%d calls from another port were served", got)
		}
		if got := permitted(t, 10, check("192.0.2.2:1")); got != 10 {
			t.Errorf("%d calls from another host were served", got)
		}
		time.Sleep(time.Minute)
		if got := permitted(t, 100, check("192.0.2.1:3")); got != 50 {
			t.Errorf("%d calls were served later", got)
		}
	})
}

// Health is for anybody, whatever it shows, and on nobody else's account.
func TestHealthIsForAnybody(t *testing.T) {
	d := newDesk(t, usualFile, limited(access.Limits{Calls: 1, Burst: 20}))
	check := func(ctx context.Context, p *papers) error {
		_, err := grpc_health_v1.NewHealthClient(d.dial(p)).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	wantCode(t, check(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer nonsense"), &papers{}), codes.OK)
	wantCode(t, check(t.Context(), &papers{ids: []string{"spiffe://d/x"}, unverified: true}), codes.OK)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
	for range 20 {
		wantCode(t, check(ctx, &papers{ids: []string{"spiffe://d/lookup/sessions"}}), codes.OK)
	}
	wantCode(t, listOwners(t.Context(), d.as("spiffe://d/operator/ann"), "sessions"), codes.OK)
}

func TestBadLimits(t *testing.T) {
	d := newDesk(t, usualFile)
	for _, l := range []access.Limits{{Calls: -1}, {Burst: -1}, {Streams: -1}, {Messages: -1}, {All: -1}} {
		if p, err := access.Open(access.Config{File: d.file, Limits: l}); err == nil {
			p.Close()
			t.Errorf("%+v is taken", l)
		}
	}
}

// Whoever sends too much is refused, by calls and on streams together; others are not.
func TestBytesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile, limited(access.Limits{Bytes: 1000}))
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
				t.Errorf("after %v %d calls were served, want %d", test.wait, got, test.want)
			}
		}
		if got := permitted(t, 4, ask(ann)); got != 4 {
			t.Errorf("%d calls of another were served", got)
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
