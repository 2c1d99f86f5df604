package statemove

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

// ownerKeepers returns certificates of owners of one namespace, by name.
func ownerKeepers(t *testing.T, names ...string) map[string]*secure.Keeper {
	t.Helper()
	var parties []pki.Party
	for _, name := range names {
		parties = append(parties, pki.Party{Role: pki.Owner, Namespace: "presence", Name: name, Hosts: []string{"target"}})
	}
	_, issued, err := pki.Create(t.TempDir()+"/pki", "example.org", parties, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*secure.Keeper)
	for _, i := range issued {
		k, err := secure.Open(secure.Config{Cert: i.Dir + "/tls.crt", Key: i.Dir + "/tls.key", Roots: i.Dir + "/ca.crt"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		out[i.Party.Name] = k
	}
	return out
}

// Only the source and target that the leader announces transfer state; other owners with valid
// certificates are rejected.
func TestIdentitiesAreChecked(t *testing.T) {
	keepers := ownerKeepers(t, "source", "target", "other")
	id := func(name string) secure.Identity {
		return secure.Identity("spiffe://example.org/owner/presence/" + name)
	}
	for _, test := range []struct {
		name         string
		source       string // name of the actual source
		from, to     secure.Identity
		moves        bool
		refused      string // error at the source
		targetCalled bool   // the target received the call
	}{
		{"announced identities", "source", id("source"), id("target"), true, "", true},
		{"no identities", "source", "", "", true, "", true},
		{"another source", "other", id("source"), id("target"), false, "no leader has announced it", true},
		{"another target", "source", id("source"), id("other"), false, `want \"spiffe://example.org/owner/presence/other\"`, false},
		{"a name in another namespace", "source", "spiffe://example.org/owner/other/source", id("target"), false, "no leader has announced", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newFakeNetwork()
			called := make(chan struct{}, 100)
			s := Serve(r.listener, ServerConfig{
				Namespace: "presence", Session: testSession, Idle: testIdle, Logger: slog.New(slog.DiscardHandler),
				Credentials: keepers["target"].ServerWith(secure.Required),
				Options: []grpc.ServerOption{
					grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
						called <- struct{}{}
						return handler(srv, stream)
					}),
				},
			})
			t.Cleanup(s.Close)
			i := &importer{done: make(chan struct{})}
			i.in = s.Expect(testTicket, test.from, func(in *Incoming) {
				go func() {
					defer close(i.done)
					defer in.Release()
					i.read(in)
				}()
			})
			d := r.departure()
			d.Idle = 2 * time.Second
			d.DialOptions = []grpc.DialOption{grpc.WithContextDialer(r.dial), grpc.WithTransportCredentials(To(test.to, keepers[test.source].Client()))}
			o := Open(t.Context(), d)
			t.Cleanup(o.Close)
			err := o.Send([]byte("secret"))
			if err == nil {
				err = o.Finish()
			}
			if test.moves {
				if <-i.done; err != nil || i.err != nil || len(i.has()) != 1 {
					t.Fatalf("transfer failed: %v, %v, %q", err, i.err, i.has())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refused) || len(i.has()) != 0 {
				t.Errorf("error %v, want %q; the target has %q", err, test.refused, i.has())
			}
			if (len(called) > 0) != test.targetCalled {
				t.Errorf("the target was called %d times", len(called))
			}
		})
	}
}

// Plaintext connections have no identities to check.
func TestPlaintextHasNoIdentity(t *testing.T) {
	r := newFakeNetwork()
	s := r.serve(t)
	i := &importer{done: make(chan struct{})}
	i.in = s.Expect(testTicket, "spiffe://example.org/owner/presence/source", func(in *Incoming) {
		go func() {
			defer close(i.done)
			defer in.Release()
			i.read(in)
		}()
	})
	o := r.transfer(t)
	if err := o.Send([]byte("a record")); err != nil {
		t.Fatal(err)
	}
	if err := o.Finish(); err != nil {
		t.Fatal(err)
	}
	<-i.done
}
