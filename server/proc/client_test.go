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

// TestFirst: one server after the other is called, until one answers.
func TestFirst(t *testing.T) {
	g, err := Dial([]string{"a", "b", "c"}, insecure.NewCredentials(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	dead := leasehold.Errorf("", leasehold.ErrUnavailable, "", "dead")
	for _, test := range []struct {
		name  string
		says  []error
		index int
		want  error
	}{
		{"the first answers", []error{nil}, 0, nil},
		{"the last answers", []error{dead, dead, nil}, 2, nil},
		{"none answers", []error{dead, dead, dead}, 0, leasehold.ErrUnavailable},
	} {
		asked := 0
		i, err := g.First(t.Context(), func(ctx context.Context, _ grpc.ClientConnInterface) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("it may take for ever")
			}
			asked++
			return test.says[asked-1]
		})
		if asked != len(test.says) || i != test.index || !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: asked %d, it is %d, %v", test.name, asked, i, err)
		}
	}
}
