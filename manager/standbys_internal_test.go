package manager

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/metadata"
)

// Whatever headers calls have, the list of standbys is bounded, and contains only addresses.
func TestStandbyListIsBounded(t *testing.T) {
	s := newStandbys()
	say := func(addr string) {
		s.record(metadata.NewIncomingContext(context.Background(), metadata.Pairs(managerHeader, addr)), 1)
	}
	for i := range 3 * maxStandbys {
		say(fmt.Sprintf("m%d:7400", i))
	}
	if n := len(s.list(1)); n != maxStandbys {
		t.Errorf("%d standbys, want %d", n, maxStandbys)
	}
	s = newStandbys()
	for _, addr := range []string{"", "1", "m1", ":7400", "m 1:7400", "0.0.0.0:7400", string(make([]byte, 300)) + ":7400"} {
		say(addr)
	}
	if list := s.list(1); len(list) != 0 {
		t.Errorf("expired standbys are listed: %v", list)
	}
}
