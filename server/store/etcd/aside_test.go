package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// TestStepAside: a member steps aside for one that takes part, and not for one
// that only looks alive, such as one whose disk hangs.
func TestStepAside(t *testing.T) {
	group := formGroup(t, etcd.PeerTLS{}, "a", "b", "c")
	// The member that was started last is the one that can step aside.
	var leader *etcd.Embedded
	var others []*etcd.Embedded
	for _, m := range group {
		if m.KnowsOthers() {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	eventually(t, "the lead", leader.TakeLead)
	eventually(t, "stepping aside", func(ctx context.Context) error { return stepAside(ctx, leader) })

	eventually(t, "the lead again", leader.TakeLead)
	if err := leader.StepAside(t.Context()); err != nil || !leader.Leads() {
		t.Errorf("it stepped aside again at once (%v)", err)
	}
	stuck, alive := others[0], others[1]
	if err := stuck.Close(); err != nil {
		t.Fatal(err)
	}
	pretend(t, stuck.Config().PeerURL) // as if only its listener were left
	eventually(t, "that it is missed", func(context.Context) error {
		if !leader.Misses(stuck.Config().Name) {
			return errors.New("not yet")
		}
		return nil
	})
	for range 2 {
		leader.EndPause()
		eventually(t, "the lead once more", leader.TakeLead)
		eventually(t, "stepping aside for the one that is left", func(ctx context.Context) error { return stepAside(ctx, leader) })
		eventually(t, "the other leads", func(context.Context) error {
			if !alive.Leads() {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

func stepAside(ctx context.Context, m *etcd.Embedded) error {
	if err := m.StepAside(ctx); err != nil {
		return err // it asked one that cannot: later tries find a pause
	}
	if m.Leads() {
		return fmt.Errorf("it still leads")
	}
	return nil
}

// pretend answers at a peer URL as a member does whose raft is stuck.
func pretend(t *testing.T, peer string) {
	t.Helper()
	u, err := url.Parse(peer)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			select {
			case <-ended.Done():
			case <-r.Context().Done():
			}
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		end()
		_ = server.Close()
		<-served
	})
}
