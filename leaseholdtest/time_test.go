package leaseholdtest_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A server that holds a lock while time passes, as the package's
// documentation recommends, does not stop the clock.
func TestChannelLockDoesNotStopClock(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		lock := make(chan struct{}, 1)
		c.Node("a").Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			lock <- struct{}{}
			defer func() { <-lock }()
			time.Sleep(time.Second) // such as a write to a database
			_, _ = io.WriteString(w, "done")
		}))
		began := time.Now()
		errs := make(chan error, 3)
		for range cap(errs) {
			client := c.Node("caller").Client()
			go func() {
				r, err := client.Get("http://a:8080")
				if err == nil {
					err = r.Body.Close()
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if passed := time.Since(began).Truncate(time.Second); passed != 3*time.Second {
			t.Errorf("three sequential requests of a second each took %v", passed)
		}
	})
}
