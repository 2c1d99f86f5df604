package memnet_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A cut in one direction delays only data of that direction.
func TestCutOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, time.Millisecond)
		p.net.CutOneWay("a", "b")
		begun := time.Now()
		write(t, p.at, "x")
		write(t, p.to, "y")
		if got := read(t, p.at, 1); string(got) != "y" || time.Since(begun) != time.Millisecond {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
		time.AfterFunc(time.Minute, func() { p.net.Heal("b", "a") })
		if got := read(t, p.to, 1); string(got) != "x" || time.Since(begun) < time.Minute {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
	})
}

// Data is delayed by its path, and never overtakes earlier data.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, time.Millisecond)
		delay := 5 * time.Millisecond
		p.net.Delay = func(from, _ string) time.Duration {
			if from == "b" {
				return 0
			}
			return delay
		}
		begun := time.Now()
		write(t, p.at, "x")
		delay = 0
		write(t, p.at, "y")
		write(t, p.to, "z")
		if got := read(t, p.at, 1); string(got) != "z" || time.Since(begun) != time.Millisecond {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
		if got := read(t, p.to, 2); string(got) != "xy" || time.Since(begun) != 6*time.Millisecond {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
	})
}

// Reset resets the connections between two hosts, and new ones can be opened.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, time.Millisecond)
		p.net.Reset("a", "c")
		write(t, p.at, "x")
		read(t, p.to, 1)
		p.net.Reset("a", "b")
		if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && err == nil {
			t.Error("read after a reset:", err)
		}
		if _, err := p.a.Dial(t.Context(), "b:80"); err != nil {
			t.Error(err)
		}
	})
}
