package witness

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// FuzzObservations: what an owner has written of itself is read as it was written.
func FuzzObservations(f *testing.F) {
	r := Record{About: Belief, Key: 1, Generation: 2, Session: leasehold.Session{3}, Check: Span{4, 5}, Held: Span{6, 7}}
	b := r.encode()
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		err := Read(bytes.NewReader(b), func(r Record) {
			e := r.encode()
			again = append(again, e[:]...)
		})
		if whole := len(b) / Size * Size; (err == nil) != (whole == len(b)) || !bytes.Equal(again, b[:whole]) {
			t.Fatalf("%v:\n%s", err, cmp.Diff(b, again))
		}
	})
}
