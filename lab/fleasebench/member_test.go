package fleasebench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTogether(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(0, n) }
	got := together([]Batch{{3, at(1_000), at(5_000), 7}, {4, at(900), at(4_000), 1}})
	if diff := cmp.Diff(Batch{7, at(900), at(5_000), 8}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
