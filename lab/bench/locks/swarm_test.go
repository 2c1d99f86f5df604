package locks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// idle is the processor time of idle servers.
func idle() (time.Duration, error) { return 0, nil }

// TestSwarmTakesEachNameOnce: each name is taken once.
func TestSwarmTakesEachNameOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := make(map[string]int)
		got, err := Swarm{Servers: idle, Limit: time.Hour}.Run(t.Context(), 10*Clients, "x", func(_ context.Context, _ int, resource string) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			seen[resource]++
			return nil
		})
		if err != nil || got.Leases != 10*Clients || got.Took != 10*time.Second {
			t.Errorf("%+v, %v", got, err)
		}
		if len(seen) != 10*Clients || seen["x-000000"] != 1 {
			t.Errorf("%d names, the first of them %d times", len(seen), seen["x-000000"])
		}
	})
}

func TestSwarmEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := Swarm{Servers: idle, Limit: 5 * time.Second}.Run(t.Context(), 1<<30, "x", func(context.Context, int, string) error {
			time.Sleep(2 * time.Second)
			return nil
		})
		if err != nil || got.Leases != 3*Clients || got.Took != 6*time.Second {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestSwarmReportsErrors(t *testing.T) {
	broken := errors.New("broken")
	_, err := Swarm{Servers: idle, Limit: time.Hour}.Run(t.Context(), 1<<30, "x", func(context.Context, int, string) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}
