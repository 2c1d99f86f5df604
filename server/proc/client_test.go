package proc

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// TestAsked: one after the other, until one answers or says what all would say.
func TestAsked(t *testing.T) {
	g, err := Dial([]string{"a", "b", "c"}, insecure.NewCredentials(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	dead, exists := leasehold.Errorf("", leasehold.ErrUnavailable, "", "dead"), leasehold.Errorf("", leasehold.ErrExists, "", "there")
	for _, test := range []struct {
		name  string
		says  []error
		asked int
		want  error
	}{
		{"the first answers", []error{nil}, 1, nil},
		{"the last answers", []error{dead, dead, nil}, 3, nil},
		{"nobody answers", []error{dead, dead, dead}, 3, leasehold.ErrUnavailable},
		{"the second knows", []error{dead, exists}, 2, leasehold.ErrExists},
	} {
		asked := 0
		err := g.Ask(t.Context(), func(ctx context.Context, _ leaseholdv1.AdminServiceClient) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("it may take for ever")
			}
			asked++
			return test.says[asked-1]
		}, leasehold.ErrExists)
		if asked != test.asked || !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: asked %d, %v", test.name, asked, err)
		}
	}
	asked := 0
	i, err := g.First(t.Context(), func(context.Context, grpc.ClientConnInterface) error {
		if asked++; asked < 2 {
			return dead
		}
		return nil
	})
	if i != 1 || err != nil {
		t.Errorf("it is %d, %v", i, err)
	}
}
