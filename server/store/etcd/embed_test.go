package etcd_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/storetest"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// startTimeout is far longer than a start takes on a loaded machine.
const startTimeout = time.Minute

func quiet(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// embed starts a member and closes it at the end of the test.
func embed(t testing.TB, cfg etcd.EmbedConfig) *etcd.Embedded {
	t.Helper()
	m, err := tryEmbed(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

func tryEmbed(t testing.TB, cfg etcd.EmbedConfig) (*etcd.Embedded, error) {
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if cfg.Logger == nil {
		cfg.Logger = quiet(t)
	}
	return etcd.Embed(ctx, cfg)
}

func TestEmbeddedStore(t *testing.T) {
	runUnderPrefixes(t, embed(t, etcd.EmbedConfig{Dir: t.TempDir()}))
}

// runUnderPrefixes runs the suite on one member.
func runUnderPrefixes(t *testing.T, m *etcd.Embedded) {
	var n atomic.Int64
	storetest.Run(t, func(*testing.T) store.Store { return m.Under(fmt.Sprintf("/test/%d/", n.Add(1))) })
}

// takeOver writes the leader record of the next term.
func takeOver(t testing.TB, s store.Store, leader storage.ManagerID) leasehold.Term {
	t.Helper()
	now, err := s.Record(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	_, outcome, err := s.Swap(t.Context(), now.Version, storage.Record{Term: now.Term + 1, Leader: leader})
	if outcome != storage.Done {
		t.Fatalf("taking over: %v, %v", outcome, err)
	}
	return now.Term + 1
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := embed(t, etcd.EmbedConfig{Dir: dir})
	takeOver(t, first, "m1")
	cluster := first.Cluster()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	again := embed(t, etcd.EmbedConfig{Dir: dir, Cluster: cluster})
	if r, err := again.Record(t.Context(), true); err != nil || r.Leader != "m1" {
		t.Errorf("after a restart the record is %+v (%v)", r, err)
	}
	if got := again.Cluster(); got != cluster {
		t.Errorf("the cluster was %s and is %s", cluster, got)
	}
	if other := embed(t, etcd.EmbedConfig{Dir: t.TempDir()}); other.Cluster() == cluster {
		t.Errorf("two stores have the same name, %s", cluster)
	}
}
