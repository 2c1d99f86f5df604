package oracle

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// FuzzObservations checks that decoded records encode to the same bytes.
func FuzzObservations(f *testing.F) {
	r := Record{About: Belief, Key: 1, Generation: 2, Session: leasehold.Session{3}, Check: Span{4, 5}, Held: Span{6, 7}}
	var b bytes.Buffer
	if err := WriteRecords(&b, r); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var written bytes.Buffer
		err := ReadRecords(bytes.NewReader(b), func(r Record) {
			if err := WriteRecords(&written, r); err != nil {
				t.Fatal(err)
			}
		})
		again := written.Bytes()
		if whole := len(b) / Size * Size; (err == nil) != (whole == len(b)) || !bytes.Equal(again, b[:whole]) {
			t.Fatalf("%v:\n%s", err, cmp.Diff(b, again))
		}
	})
}
