package access_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An idleStream has been authorized by its first message, and is idle since.
type idleStream struct {
	name  string
	ended chan error
	at    time.Time
}

// openStreams opens a stream of each kind.
func openStreams(ctx context.Context, t *testing.T, conn func(id string) grpc.ClientConnInterface) (all []*idleStream) {
	t.Helper()
	listen := func(name string, recv func() error) {
		if err := recv(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := &idleStream{name: name, ended: make(chan error, 1)}
		go func() {
			err := recv()
			s.at = time.Now()
			s.ended <- err
		}()
		all = append(all, s)
	}
	h := hold(ctx, t, conn("spiffe://d/owner/sessions/a"))
	h.send("sessions", "a")
	listen("hold", func() error { _, err := h.Recv(); return err })
	follow, err := leaseholdv1.NewLookupServiceClient(conn("spiffe://d/lookup/sessions")).Follow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Send(&leaseholdv1.FollowRequest{Namespace: "sessions"}); err != nil {
		t.Fatal(err)
	}
	listen("follow", func() error { _, err := follow.Recv(); return err })
	watch, err := leaseholdv1.NewAdminServiceClient(conn("spiffe://d/operator/ann")).Watch(ctx, &leaseholdv1.WatchRequest{Namespace: "sessions"})
	if err != nil {
		t.Fatal(err)
	}
	listen("watch", func() error { _, err := watch.Recv(); return err })
	return all
}

func standing(t *testing.T, all []*idleStream) {
	t.Helper()
	synctest.Wait()
	for _, s := range all {
		select {
		case err := <-s.ended:
			t.Errorf("%s ended: %v", s.name, err)
		default:
		}
	}
}

func ended(t *testing.T, all []*idleStream, since time.Time, within time.Duration, code codes.Code, parts ...string) {
	t.Helper()
	for _, s := range all {
		select {
		case err := <-s.ended:
			wantCode(t, err, code, parts...)
			if took := s.at.Sub(since); took > within {
				t.Errorf("%s ended after %v", s.name, took)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s has not ended", s.name)
		}
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (d *fixture) conn(id string) grpc.ClientConnInterface { return d.as(id) }

const onlyManagers = "rules:\n  - identity: spiffe://d/manager/m1\n    role: manager\n    namespaces: [\"*\"]\n"

// Idle streams end within a second when the file no longer permits them, and continue when
// it does.
func TestNewFileEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		all := openStreams(t.Context(), t, d.conn)
		time.Sleep(time.Hour)
		d.write(defaultFile + "\n# a comment\n")
		time.Sleep(time.Minute)
		standing(t, all)
		if n := len(d.log.Lines("access file loaded")); n != 2 {
			t.Errorf("%d files were loaded", n)
		}
		begun := time.Now()
		d.write(onlyManagers)
		ended(t, all, begun, time.Second, codes.PermissionDenied, "has no role")
		if n := len(d.log.Lines("call denied", "has no role")); n != len(all) {
			t.Errorf("%d denials:\n%s", n, d.log)
		}
	})
}

// Reload ends streams immediately.
func TestReloadEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		all := openStreams(t.Context(), t, d.conn)
		d.write(strings.ReplaceAll(defaultFile, "[sessions]", "[cache]"))
		begun := time.Now()
		if err := d.policy.Reload(); err != nil {
			t.Fatal(err)
		}
		ended(t, all, begun, 0, codes.PermissionDenied, `in namespace "sessions"`)
	})
}

func TestRevocationEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		all := openStreams(t.Context(), t, d.conn)
		time.Sleep(time.Minute)
		d.revoke("spiffe://d/lookup/sessions")
		begun := time.Now()
		ended(t, all[1:2], begun, time.Second, codes.Unauthenticated, "was revoked")
		standing(t, []*idleStream{all[0], all[2]})
		wantCode(t, listOwners(t.Context(), d.as("spiffe://d/lookup/sessions"), "sessions"), codes.Unauthenticated, "was revoked")
	})
}

// A token that expires, is replaced or removed ends the streams that used it.
func TestInvalidTokensEndStreams(t *testing.T) {
	for name, test := range map[string]struct {
		then string // the next file; "" leaves it
		want string
	}{
		"expires":  {"", "expired at"},
		"replaced": {strings.ReplaceAll(defaultFile, aliceHash, hashOf("another")), "replaced"},
		"removed":  {onlyManagers, "replaced or removed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := time.Now().Add(time.Hour)
				d := newFixture(t, defaultFile+"    expires: "+until.UTC().Format(time.RFC3339)+"\n")
				conn := d.dial(&fakeCredentials{}, grpc.WithPerRPCCredentials(access.Bearer(aliceToken, false)))
				watch, err := leaseholdv1.NewAdminServiceClient(conn).Watch(within(t, 2*time.Hour), &leaseholdv1.WatchRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := watch.Recv(); err != nil {
					t.Fatal(err)
				}
				begun := until
				if test.then != "" {
					begun = time.Now()
					d.write(test.then)
				}
				_, err = watch.Recv()
				wantCode(t, err, codes.Unauthenticated, test.want)
				if took := time.Since(begun); took < 0 || took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// An invalid file changes nothing and is logged once.
func TestInvalidFilesAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		all := openStreams(t.Context(), t, d.conn)
		for _, broken := range []string{"", "rules: []\n", defaultFile + "more: 1\n", "rules:\n" + strings.Repeat("#", 1<<20)} {
			before := len(d.log.Lines("access file rejected"))
			d.write(broken)
			time.Sleep(time.Minute)
			if n := len(d.log.Lines("access file rejected")) - before; n != 1 {
				t.Errorf("%.20q: %d lines:\n%s", broken, n, d.log)
			}
			if err := d.policy.Reload(); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), d.file) {
				t.Errorf("%.20q: %v", broken, err)
			}
		}
		if err := os.Remove(d.file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d.write(defaultFile)
		if err := os.Chmod(d.file, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := d.policy.Reload(); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("%v", err)
		}
		standing(t, all)
		wantCode(t, listOwners(t.Context(), d.as("spiffe://d/lookup/sessions"), "sessions"), codes.OK)
	})
}

// A file that keeps changing is not applied.
func TestPartlyWrittenFilesAreNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		all := openStreams(t.Context(), t, d.conn)
		for range 50 { // at every moment between two readings
			d.write(onlyManagers) // a valid file that is not complete
			time.Sleep(80 * time.Millisecond)
			d.write(defaultFile)
			time.Sleep(730 * time.Millisecond)
		}
		standing(t, all)
	})
}

// A stream ends although its handler is blocked in Recv and ignores its context.
func TestBlockedHandlersAreForcedToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		stream, err := reflection.NewServerReflectionClient(d.as("spiffe://d/lookup/sessions")).ServerReflectionInfo(within(t, time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflection.ServerReflectionRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		d.revoke("spiffe://d/lookup/sessions")
		_, err = stream.Recv()
		wantCode(t, err, codes.Canceled)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A handler has at least checkInterval to return the reason before its stream is aborted,
// whenever the next check is.
func TestHandlersHaveTimeToReturnTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		stream, err := reflection.NewServerReflectionClient(d.as("spiffe://d/lookup/sessions")).ServerReflectionInfo(within(t, time.Hour))
		if err == nil {
			err = stream.Send(&reflection.ServerReflectionRequest{})
		}
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(399 * time.Millisecond) // the next check is 1 ms later
		d.write(onlyManagers)
		if err := d.policy.Reload(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = stream.Recv()
		wantCode(t, err, codes.Canceled)
		if took := time.Since(begun); took < 400*time.Millisecond || took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A forwarded call has the permissions of its original caller.
func TestForwardedCalls(t *testing.T) {
	d := newFixture(t, defaultFile)
	on := func(pairs ...string) context.Context { return metadata.AppendToOutgoingContext(t.Context(), pairs...) }
	const manager, lookup, ann = "spiffe://d/manager/m1", "spiffe://d/lookup/sessions", "spiffe://d/operator/ann"
	for name, test := range map[string]struct {
		ids  []string
		ctx  context.Context
		ns   string
		code codes.Code
		want string
	}{
		"of a lookup":                   {[]string{manager}, on("leasehold-caller", lookup), "sessions", codes.OK, ""},
		"of a lookup, elsewhere":        {[]string{manager}, on("leasehold-caller", lookup), "cache", codes.PermissionDenied, lookup + " has no role for this"},
		"of an unknown identity":        {[]string{manager}, on("leasehold-caller", "spiffe://d/x"), "sessions", codes.PermissionDenied, "spiffe://d/x has no role"},
		"of a token":                    {[]string{manager}, on("leasehold-caller", "token:alice"), "cache", codes.OK, ""},
		"of a removed token":            {[]string{manager}, on("leasehold-caller", "token:bob"), "sessions", codes.Unauthenticated, "removed"},
		"of two":                        {[]string{manager}, on("leasehold-caller", "spiffe://d/x", "leasehold-caller", lookup), "sessions", codes.OK, ""},
		"of a pattern":                  {[]string{manager}, on("leasehold-caller", "spiffe://d/owner/sessions/{name}"), "sessions", codes.PermissionDenied, "invalid identity"},
		"of an empty identity":          {[]string{manager}, on("leasehold-caller", ""), "sessions", codes.PermissionDenied, "invalid identity"},
		"by an operator":                {[]string{ann}, on("leasehold-caller", "token:alice"), "cache", codes.PermissionDenied, ann + " is not a manager"},
		"by an operator, of itself":     {[]string{ann}, on("leasehold-caller", ann), "sessions", codes.PermissionDenied, "is not a manager"},
		"by a lookup, of a manager":     {[]string{lookup}, on("leasehold-caller", manager), "cache", codes.PermissionDenied, "is not a manager"},
		"by an anonymous caller":        {nil, on("leasehold-caller", "token:alice"), "cache", codes.Unauthenticated, "manager's certificate"},
		"without a caller":              {[]string{manager}, on("leasehold-forwarded", "1"), "sessions", codes.PermissionDenied, "without its caller"},
		"without a caller, by a lookup": {[]string{lookup}, on("leasehold-forwarded", "1"), "sessions", codes.PermissionDenied, "without its caller"},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, listOwners(test.ctx, d.as(test.ids...), test.ns), test.code, test.want)
		})
	}
	// A token cannot be a manager.
	conn := d.dial(&fakeCredentials{}, grpc.WithPerRPCCredentials(access.Bearer(aliceToken, false)))
	wantCode(t, listOwners(on("leasehold-caller", lookup), conn, "sessions"), codes.PermissionDenied, "token:alice is not a manager")
}

// A forwarded stream ends when its caller or the forwarding manager is no longer permitted.
func TestForwardedStreamsEnd(t *testing.T) {
	for name, then := range map[string]string{
		"the caller":  strings.ReplaceAll(defaultFile, "spiffe://d/operator/ann", "spiffe://d/operator/bob"),
		"the manager": strings.ReplaceAll(defaultFile, "spiffe://d/manager/m1", "spiffe://d/manager/m2"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, defaultFile)
				ctx := metadata.AppendToOutgoingContext(within(t, time.Hour), "leasehold-caller", "spiffe://d/operator/ann")
				watch, err := leaseholdv1.NewAdminServiceClient(d.as("spiffe://d/manager/m1")).Watch(ctx, &leaseholdv1.WatchRequest{Namespace: "sessions"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := watch.Recv(); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				d.write(then)
				_, err = watch.Recv()
				wantCode(t, err, codes.PermissionDenied)
				if took := time.Since(begun); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
