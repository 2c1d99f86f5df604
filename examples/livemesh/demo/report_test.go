package demo

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

func TestReport(t *testing.T) {
	for _, test := range []struct {
		what   string
		report Report
		want   []string
	}{
		{"over at once", Report{}, []string{"\nnothing was killed", "learned no address", "0 messages were acknowledged, and none was lost\n"}},
		{
			"losses",
			Report{
				Blows: []string{"x was killed"}, Addresses: 2, P50: 1, Longest: 1000,
				Queues: promise.Tally{Due: 5, Lost: 2}, Topics: promise.Tally{Due: 7},
			},
			[]string{"\nonce something was killed", "2 addresses: half of them within 1 ms, the longest took 1000 ms", "5 messages were acknowledged, 2 of them lost, all reported", "7 copies were due, and none"},
		},
		{"kills", Report{Blows: []string{"x was killed", "y was killed"}}, []string{"\n2 times something was killed"}},
	} {
		test.report.Presence = &load.Report{}
		text := test.report.String()
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", test.what, text, want)
			}
		}
	}
}
