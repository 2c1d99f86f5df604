package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/storetest"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// open opens a store, and waits for a server that is still starting.
func open(t testing.TB, cfg etcd.Config) *etcd.Store {
	t.Helper()
	cfg.Logger = quiet(t)
	var s *etcd.Store
	eventually(t, "open", func(ctx context.Context) (err error) {
		s, err = etcd.Open(ctx, cfg)
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestExternalStore(t *testing.T) {
	url := startServer(t, "http")
	var n atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, etcd.Config{Endpoints: []string{url}, Prefix: fmt.Sprintf("/test/%d", n.Add(1))})
	})
}

// TestExternalStoreWithCredentials uses mutual TLS, and a user with access to a single prefix.
func TestExternalStoreWithCredentials(t *testing.T) {
	certs := newAuthority(t)
	url := startServer(t, "https", "--cert-file="+certs.certFile, "--key-file="+certs.keyFile,
		"--client-cert-auth", "--trusted-ca-file="+certs.caFile)
	addUser(t, url, certs.client, "leasehold", "secret", "/mine/")

	var n atomic.Int64
	cfg := etcd.Config{Endpoints: []string{url}, TLS: certs.client, Username: "leasehold", Password: secret.New("secret")}
	storetest.Run(t, func(t *testing.T) store.Store {
		own := cfg
		own.Prefix = fmt.Sprintf("/mine/%d", n.Add(1))
		return open(t, own)
	})
	for name, c := range map[string]struct {
		spoil func(*etcd.Config)
		want  leasehold.Kind
	}{
		"another's prefix": {func(c *etcd.Config) { c.Prefix = "/theirs/" }, leasehold.ErrInvalid},
		"a wrong password": {func(c *etcd.Config) { c.Password = secret.New("guess") }, leasehold.ErrInvalid},
		"no user":          {func(c *etcd.Config) { c.Username, c.Password = "", secret.Text{} }, leasehold.ErrInvalid},
		"no certificate":   {func(c *etcd.Config) { c.TLS = &tls.Config{RootCAs: certs.client.RootCAs} }, leasehold.ErrUnavailable},
		"no TLS":           {func(c *etcd.Config) { c.TLS = nil }, leasehold.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bad := cfg
			bad.Prefix, bad.Logger = "/mine/x", quiet(t)
			c.spoil(&bad)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			s, err := etcd.Open(ctx, bad)
			if err == nil {
				_ = s.Close()
			}
			if leasehold.KindOf(err) != c.want || !strings.Contains(fmt.Sprint(err), url) {
				t.Errorf("error %v, want kind %v and the endpoint", err, c.want)
			}
		})
	}
}

// addUser creates root and a user with access to one prefix, and enables authentication.
func addUser(t *testing.T, url string, conf *tls.Config, name, password, prefix string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, TLS: conf, DialTimeout: startTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	eventually(t, "contact", func(ctx context.Context) error {
		_, err := c.Get(ctx, "x")
		return err
	})
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(t.Context(), "root", "root"); return err },
		func() error { _, err := c.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := c.RoleAdd(t.Context(), "group"); return err },
		func() error {
			_, err := c.RoleGrantPermission(t.Context(), "group", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(t.Context(), name, password); return err },
		func() error { _, err := c.UserGrantRole(t.Context(), name, "group"); return err },
		func() error { _, err := c.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenUnreachable(t *testing.T) {
	addr := freeAddr(t)
	for name, c := range map[string]struct {
		cfg  etcd.Config
		wait time.Duration
	}{
		"plain":            {etcd.Config{}, time.Second},
		"with user":        {etcd.Config{Username: "u", Password: secret.New("p")}, time.Second},
		"without time":     {etcd.Config{}, 0},
		"user but no time": {etcd.Config{Username: "u", Password: secret.New("p")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.wait)
			defer cancel()
			began := time.Now()
			c.cfg.Endpoints, c.cfg.Logger = []string{addr}, quiet(t)
			_, err := etcd.Open(ctx, c.cfg)
			if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(fmt.Sprint(err), addr) {
				t.Errorf("error %v, want one of kind unavailable that names %s", err, addr)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestOpenRejectsInvalidConfig(t *testing.T) {
	for name, cfg := range map[string]etcd.Config{
		"no endpoints":         {},
		"password but no name": {Endpoints: []string{"127.0.0.1:1"}, Password: secret.New("p")},
	} {
		if _, err := etcd.Open(t.Context(), cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTimeoutDoesNotAffectOtherRequests: a request that times out does not affect other requests.
func TestTimeoutDoesNotAffectOtherRequests(t *testing.T) {
	s := open(t, etcd.Config{Endpoints: []string{startServer(t, "http")}})
	takeOver(t, s, "m1")
	watched := make(chan storage.Record, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.WatchRecord(ctx, func(r storage.Record) {
		select {
		case watched <- r:
		default:
		}
	})
	for range 20 {
		short, end := context.WithTimeout(t.Context(), time.Microsecond)
		_, err := s.Record(short, true)
		end()
		if err == nil {
			t.Fatal("a response after the timeout")
		}
		if _, err := s.Record(t.Context(), true); err != nil {
			t.Fatalf("the timeout of another request: %v", err)
		}
	}
	eventually(t, "a hint", func(context.Context) error {
		takeOver(t, s, "m1")
		select {
		case <-watched:
			return nil
		default:
			return fmt.Errorf("none yet")
		}
	})
}
