package search

import (
	"bytes"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/server/console"
)

// plain returns a text as written to a stream that is no terminal.
func plain(s string) string {
	var out bytes.Buffer
	console.New(&out).Say("%s", s)
	return out.String()
}

// at returns the summary of an incomplete campaign.
func at(seeds int, elapsed time.Duration, failures int) *engine.Summary {
	return &engine.Summary{
		Counts: engine.Counts{Simulated: time.Duration(seeds) * 140 * time.Second},
		Seeds:  seeds, Elapsed: elapsed, Failures: make([]engine.Failure, failures),
	}
}

func TestNumbers(t *testing.T) {
	o := parsed(t, "--seeds=1000")
	for _, test := range []struct {
		now  *engine.Summary
		want string
	}{
		{at(0, 0, 0), "0/1000 seeds, 0 sim h, 0x, 0 violations, ETA ?"},
		{at(250, time.Second, 0), "250/1000 seeds, 10 sim h, 35,000x, 0 violations, ETA 3s"},
		{at(500, 2*time.Second, 1), "500/1000 seeds, 19 sim h, 35,000x, 1 violation, ETA 2s"},
	} {
		if got := plain(o.numbers(test.now)); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
