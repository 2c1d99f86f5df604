package etcd_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// formGroup starts members concurrently.
func formGroup(t testing.TB, tls etcd.PeerTLS, names ...string) map[string]*etcd.Embedded {
	t.Helper()
	return formGroupOf(t, func(string) etcd.PeerTLS { return tls }, names...)
}

// formGroupOf starts members concurrently, each with its own TLS configuration.
func formGroupOf(t testing.TB, tls func(name string) etcd.PeerTLS, names ...string) map[string]*etcd.Embedded {
	t.Helper()
	scheme := "http://"
	if tls(names[0]).CertFile != "" {
		scheme = "https://"
	}
	urls := map[string]string{}
	for _, name := range names {
		urls[name] = scheme + freeAddr(t)
	}
	var mu sync.Mutex
	group := map[string]*etcd.Embedded{}
	var all sync.WaitGroup
	for name, url := range urls {
		dir := t.TempDir()
		all.Go(func() {
			m, err := tryEmbed(t, etcd.EmbedConfig{Dir: dir, Name: name, PeerURL: url, Members: urls, PeerTLS: tls(name)})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			t.Cleanup(func() { _ = m.Close() })
			mu.Lock()
			defer mu.Unlock()
			group[name] = m
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return group
}

// TestGroup: writes of one member are visible to the others, also after the failure of one of
// three. They use mutual TLS.
func TestGroup(t *testing.T) {
	certs := newAuthority(t)
	group := formGroup(t, certs.peers(t), "a", "b", "c")
	if a, b := group["a"].Cluster(), group["b"].Cluster(); a != b {
		t.Errorf("the members belong to %s and %s", a, b)
	}
	term := takeOver(t, group["a"], "on a")
	if r, err := group["b"].Record(t.Context(), true); err != nil || r.Leader != "on a" {
		t.Errorf("record at another member: %+v (%v)", r, err)
	}
	if err := group["c"].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a write by two of three", func(ctx context.Context) error {
		_, err := group["b"].Record(ctx, true)
		return err
	})
	if got := takeOver(t, group["b"], "on b"); got != term+1 {
		t.Errorf("the term is %d, want %d", got, term+1)
	}
	if r, err := group["a"].Record(t.Context(), true); err != nil || r.Leader != "on b" {
		t.Errorf("record at the other member: %+v (%v)", r, err)
	}
	healthy := map[string]bool{}
	members, err := group["a"].Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		healthy[m.Name] = m.Healthy
	}
	if want := map[string]bool{"a": true, "b": true, "c": false}; !maps.Equal(healthy, want) {
		t.Errorf("healthy members: %v, want %v", healthy, want)
	}
}

// TestGroupStore runs the suite on a group of three with one failed member.
func TestGroupStore(t *testing.T) {
	group := formGroup(t, etcd.PeerTLS{}, "a", "b", "c")
	if err := group["c"].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two of three", func(ctx context.Context) error {
		_, err := group["a"].Record(ctx, true)
		return err
	})
	runUnderPrefixes(t, group["a"])
}

// TestGrowAndShrink: a second member joins, is promoted to voter, and is removed
// again.
func TestGrowAndShrink(t *testing.T) {
	dir := t.TempDir()
	alone := embed(t, etcd.EmbedConfig{Dir: dir, Name: "a"})
	takeOver(t, alone, "m1")
	if _, _, err := alone.AddMember(t.Context(), "b", "http://"+freeAddr(t)); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a member without a peer URL adds another: %v", err)
	}
	if err := alone.RemoveMember(t.Context(), "a"); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("the last member is removed: %v", err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	a := embed(t, etcd.EmbedConfig{Dir: dir, Name: "a", PeerURL: "http://" + freeAddr(t)})
	url := "http://" + freeAddr(t)
	added, all, err := a.AddMember(t.Context(), "b", url)
	if err != nil || added.Name != "b" || !added.Learner || len(all) != 2 {
		t.Fatalf("added %+v of %+v: %v", added, all, err)
	}
	if again, _, err := a.AddMember(t.Context(), "b", url); err != nil || again.ID != added.ID {
		t.Errorf("added again: %+v, %v", again, err)
	}
	takeOver(t, a, "m1") // a member that never starts does not affect the quorum
	urls := map[string]string{}
	for _, m := range all {
		urls[m.Name] = m.PeerURLs[0]
	}
	b := embed(t, etcd.EmbedConfig{Dir: t.TempDir(), Name: "b", PeerURL: url, Members: urls, Existing: true, Cluster: a.Cluster()})
	eventually(t, "the new member votes", func(ctx context.Context) error {
		members, err := a.Members(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Learner || !m.Healthy {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	if r, err := b.Record(t.Context(), true); err != nil || r.Leader != "m1" {
		t.Errorf("record at the new member: %+v (%v)", r, err)
	}
	if _, _, err := a.AddMember(t.Context(), "b", "http://"+freeAddr(t)); leasehold.KindOf(err) != leasehold.ErrExists {
		t.Errorf("a second member of the same name: %v", err)
	}
	if err := a.RemoveMember(t.Context(), "nobody"); leasehold.KindOf(err) != leasehold.ErrNotFound {
		t.Errorf("removal of an unknown member: %v", err)
	}
	eventually(t, "removal", func(ctx context.Context) error { return a.RemoveMember(ctx, "b") })
	<-b.Done()
	if err := b.Err(); !strings.Contains(fmt.Sprint(err), "removed from its group") {
		t.Errorf("error of the removed member: %v", err)
	}
	if _, err := b.Record(t.Context(), true); !strings.Contains(fmt.Sprint(err), "removed from its group") {
		t.Errorf("a call to the removed member: %v", err)
	}
	takeOver(t, a, "m2")
}
