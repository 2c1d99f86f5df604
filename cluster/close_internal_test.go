package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// slowState is a State whose Close waits, and fails.
type slowState struct {
	State
	closing, finish chan struct{}
}

var errLost = errors.New("state is lost")

func (s *slowState) Close(context.Context) error {
	close(s.closing)
	<-s.finish
	return errLost
}

// TestCloseReportsOneResult: all calls of Close return the result of the first. While it is in progress, another call
// ends with its own context.
func TestCloseReportsOneResult(t *testing.T) {
	state := &slowState{closing: make(chan struct{}), finish: make(chan struct{})}
	c := newCluster(Config{State: state})
	c.owner = new(owner.Owner)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	first := make(chan error)
	go func() { first <- c.Close(ended) }()
	<-state.closing
	second := make(chan error)
	go func() { second <- c.Close(ended) }()
	if err := <-second; !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(state.finish)
	if err := <-first; !errors.Is(err, errLost) {
		t.Error(err)
	}
	for range 20 { // not at random
		if err := c.Close(ended); !errors.Is(err, errLost) {
			t.Error(err)
		}
	}
	if !errors.Is(c.Err(), leasehold.ErrClosed) {
		t.Error(c.Err())
	}
}
