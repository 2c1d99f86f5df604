package proc

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
)

// TestFirst: First calls one server after the other until one responds.
func TestFirst(t *testing.T) {
	g, err := Dial([]string{"a", "b", "c"}, insecure.NewCredentials(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	dead := leasehold.Errorf("", leasehold.ErrUnavailable, "", "dead")
	for _, test := range []struct {
		name    string
		results []error
		index   int
		want    error
	}{
		{"the first answers", []error{nil}, 0, nil},
		{"the last answers", []error{dead, dead, nil}, 2, nil},
		{"none answers", []error{dead, dead, dead}, 0, leasehold.ErrUnavailable},
	} {
		calls := 0
		i, err := g.First(t.Context(), func(ctx context.Context, _ grpc.ClientConnInterface) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the call has no deadline")
			}
			calls++
			return test.results[calls-1]
		})
		if calls != len(test.results) || i != test.index || !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %d calls, index %d, %v", test.name, calls, i, err)
		}
	}
}
