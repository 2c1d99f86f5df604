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

// An error of a script after a write is returned unchanged, even with the text of an error of Redis
// or of the guard: it does not mean that nothing was written, and the script is not run again.
func testOwnWords(t *testing.T, w world) {
	for _, word := range []string{"BUSY", "OOM", "NOPERM", "READONLY", "NOSCRIPT", "MOVED", "LEASEHOLDSTALE", "LEASEHOLDALIEN", "LEASEHOLDAPP"} {
		text := word + " 1 try later"
		for how, source := range map[string]string{
			"returned":         "return redis.error_reply('%s')",
			"returned a table": "return {err = '%s'}",
			"raised":           "error({err = '%s'})",
		} {
			key := "{alice}:" + w.name + word + how
			script := fenceredis.NewScript("redis.call('INCR', KEYS[1]) " + fmt.Sprintf(source, text))
			err := w.guard.Run(t.Context(), w.client, script, "alice", 7, []string{key}).Err()
			var reply redis.Error
			if !errors.As(err, &reply) || !redis.HasErrorPrefix(err, text) || how != "raised" && err.Error() != text {
				t.Errorf("%s %s: error %v, want %q", word, how, err, text)
			}
			fencetest.WantKind(t, err, leasehold.Other)
			if errors.Is(err, leasehold.ErrIndeterminate) || strings.Contains(err.Error(), "nothing was written") {
				t.Errorf("%s %s: error %v, want the script's own", word, how, err)
			}
			if n, err := w.client.Get(t.Context(), key).Int(); err != nil || n != 1 {
				t.Errorf("%s %s: the script ran %d times (%v), want once", word, how, n, err)
			}
		}
	}
}

// A result with a field err that is not an error is returned unchanged.
func testNoError(t *testing.T, w world) {
	script := fenceredis.NewScript("local r = {'x', 'y'} r.err = 5 return r")
	got, err := w.guard.Run(t.Context(), w.client, script, "alice", 7, nil).StringSlice()
	if err != nil || strings.Join(got, " ") != "x y" {
		t.Errorf("%q (%v), want x and y", got, err)
	}
}
