package logthrottle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := logthrottle.New[string](time.Minute)
		for i, step := range []struct {
			subject    string
			n          int
			suppressed int
			ok         bool
		}{
			{"a", 1, 0, true}, {"a", 3, 0, false}, {"b", 1, 0, true}, {"a", 2, 0, false},
		} {
			if suppressed, ok := th.Allow(step.subject, step.n); suppressed != step.suppressed || ok != step.ok {
				t.Errorf("step %d: %d, %t", i, suppressed, ok)
			}
		}
		time.Sleep(time.Minute)
		if suppressed, ok := th.Allow("a", 1); suppressed != 5 || !ok {
			t.Errorf("a minute later: %d, %t; want 5 suppressed", suppressed, ok)
		}
		time.Sleep(time.Minute)
		if suppressed, ok := th.Allow("a", 1); suppressed != 0 || !ok {
			t.Errorf("two minutes later: %d, %t; want 0 suppressed", suppressed, ok)
		}
	})
}
