package watcher_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
)

// An owned is a table with one owner; "" is none.
type owned struct{ addr atomic.Value }

func (o *owned) Find(leasehold.Key) (string, bool) {
	addr, _ := o.addr.Load().(string)
	return addr, addr != ""
}

// An attempt ends at the second consecutive check that finds another owner.
func TestOwner(t *testing.T) {
	for name, c := range map[string]struct {
		owners []string // in each second
		end    int      // second; 0 if it does not end
	}{
		"the same":     {[]string{"a", "a", "a", "a"}, 0},
		"none":         {[]string{"", "", "", ""}, 0},
		"another":      {[]string{"b", "b", "b", "b"}, 2},
		"later":        {[]string{"a", "a", "", "b", "c"}, 5},
		"moved back":   {[]string{"b", "a", "b", "a", "b"}, 0},
		"vacated soon": {[]string{"b", "", "b", "b"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, ended := time.Now(), 0
				var table owned
				table.addr.Store(c.owners[0])
				w := watcher.Owner(&table, 7, "a", func(cause error) {
					if ended != 0 || cause != watcher.ErrMoved { //nolint:errorlint // identity
						t.Errorf("ended again, with %v", cause)
					}
					ended = int(time.Since(began) / time.Second)
				})
				time.Sleep(time.Second / 2) // changes are between two checks
				synctest.Wait()
				for _, addr := range c.owners {
					table.addr.Store(addr)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				w.Stop()
				if ended != c.end {
					t.Errorf("ended in second %d, want %d", ended, c.end)
				}
			})
		})
	}
}

// Stop ends the checks.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		w := watcher.Start(time.Second, func() bool { checks++; return true })
		time.Sleep(3*time.Second + 1)
		synctest.Wait()
		w.Stop()
		time.Sleep(time.Minute)
		if checks != 3 {
			t.Errorf("%d checks, want 3", checks)
		}
		w.Stop() // again
	})
}

// Stop waits for a running check, so that the caller may use what the check changes.
func TestStopWaitsForCheck(t *testing.T) {
	began := make(chan struct{})
	ended := false
	w := watcher.Start(time.Nanosecond, func() bool {
		close(began)
		for range 1000 {
			ended = false
		}
		ended = true
		return false
	})
	<-began
	if w.Stop(); !ended {
		t.Error("Stop returned during a check")
	}
}
