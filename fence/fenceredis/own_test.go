//go:build unix

package fenceredis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/redis/go-redis/v9"
)

// What a script says after it wrote is its own, even if Redis or the guard could
// have said it before: it is not said that nothing was written, and the script is
// not run again.
func testOwnWords(t *testing.T, w world) {
	for _, word := range []string{"BUSY", "OOM", "NOPERM", "READONLY", "NOSCRIPT", "MOVED", "LEASEHOLDSTALE", "LEASEHOLDALIEN", "LEASEHOLDAPP"} {
		says := word + " 1 try later"
		for how, source := range map[string]string{
			"returned":         "return redis.error_reply('%s')",
			"returned a table": "return {err = '%s'}",
			"raised":           "error({err = '%s'})",
		} {
			key := "{alice}:" + w.name + word + how
			script := fenceredis.NewScript("redis.call('INCR', KEYS[1]) " + fmt.Sprintf(source, says))
			err := w.guard.Run(t.Context(), w.client, script, "alice", 7, []string{key}).Err()
			var reply redis.Error
			if !errors.As(err, &reply) || !redis.HasErrorPrefix(err, says) || how != "raised" && err.Error() != says {
				t.Errorf("%s %s: error %v, want %q", word, how, err, says)
			}
			fencetest.WantKind(t, err, leasehold.Other)
			if errors.Is(err, leasehold.ErrIndeterminate) || strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("%s %s: error %v, want the script's own", word, how, err)
			}
			if n, err := w.client.Get(t.Context(), key).Int(); err != nil || n != 1 {
				t.Errorf("%s %s: it was run %d times (%v), want once", word, how, n, err)
			}
		}
	}
}

// A result that has something by the name of an error, and is none, stays as it is.
func testNoError(t *testing.T, w world) {
	script := fenceredis.NewScript("local r = {'x', 'y'} r.err = 5 return r")
	got, err := w.guard.Run(t.Context(), w.client, script, "alice", 7, nil).StringSlice()
	if err != nil || strings.Join(got, " ") != "x y" {
		t.Errorf("%q (%v), want x and y", got, err)
	}
}
