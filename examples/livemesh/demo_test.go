package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// Who stops the demo before it has begun is not told of what could not be reached any more,
// and nothing is left behind.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	root := newRoot()
	root.SetArgs([]string{"demo"})
	root.SetOut(io.Discard)
	if err := root.ExecuteContext(ctx); !errors.Is(err, errInterrupted) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %v", err, errInterrupted)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestReport(t *testing.T) {
	for _, test := range []struct {
		what   string
		report demoReport
		want   []string
	}{
		{"over at once", demoReport{}, []string{"\nnothing was killed", "learned no address", "0 messages were acknowledged, and none was lost\n"}},
		{
			"losses",
			demoReport{
				Blows: []string{"x was killed"}, Learned: []time.Duration{time.Millisecond, time.Second},
				Queues: promise.Tally{Due: 5, Lost: 2}, Topics: promise.Tally{Due: 7},
			},
			[]string{"\nonce something was killed", "2 addresses: half of them within 1 ms, the longest took 1000 ms", "5 messages were acknowledged, 2 of them lost, and who", "7 copies were due, and none"},
		},
		{"kills", demoReport{Blows: []string{"x was killed", "y was killed"}}, []string{"\n2 times something was killed"}},
	} {
		test.report.Presence = &load.Report{}
		var said strings.Builder
		if err := test.report.print(&said); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: %s, want %q", test.what, said.String(), want)
			}
		}
	}
}
