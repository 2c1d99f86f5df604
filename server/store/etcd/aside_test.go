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

// TestStepAsideSkipsStuckMember: a leader transfers leadership to a member that takes part in
// raft, and not to one whose process accepts connections but is stuck, for example on its disk.
func TestStepAsideSkipsStuckMember(t *testing.T) {
	group := formGroup(t, etcd.PeerTLS{}, "a", "b", "c")
	// Only the member that was started last can step aside.
	var leader *etcd.Embedded
	var others []*etcd.Embedded
	for _, m := range group {
		if m.KnowsOthers() {
			leader = m
		} else {
			others = append(others, m)
		}
	}
	eventually(t, "leadership", leader.TakeLead)
	eventually(t, "stepping aside", func(ctx context.Context) error { return stepAside(ctx, leader) })

	eventually(t, "leadership again", leader.TakeLead)
	if err := leader.StepAside(t.Context()); err != nil || !leader.Leads() {
		t.Errorf("it stepped aside again without backoff (%v)", err)
	}
	stuck, alive := others[0], others[1]
	if err := stuck.Close(); err != nil {
		t.Fatal(err)
	}
	pretend(t, stuck.Config().PeerURL) // only its listener remains
	eventually(t, "loss of contact with the stuck member", func(context.Context) error {
		if !leader.Misses(stuck.Config().Name) {
			return errors.New("not yet")
		}
		return nil
	})
	for range 2 {
		leader.EndPause()
		eventually(t, "leadership once more", leader.TakeLead)
		eventually(t, "stepping aside for the remaining member", func(ctx context.Context) error { return stepAside(ctx, leader) })
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
		return err // the target cannot lead: later attempts find a backoff
	}
	if m.Leads() {
		return fmt.Errorf("it is still the leader")
	}
	return nil
}

// pretend accepts connections at a peer URL and responds to version requests only, as a member
// with a stuck raft does.
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
