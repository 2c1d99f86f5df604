package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Who names the session of another gets neither its stream nor what is said on it,
// whether it is of the same namespace or not.
func TestStreamsOfOneSessionAreApart(t *testing.T) {
	_, conn := alone(t, func(*manager.Config) {})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	say := func(r *leaseholdv1.HoldRequest) leaseholdv1.OwnerService_HoldClient {
		t.Helper()
		stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
		if err == nil {
			err = stream.Send(r)
		}
		if err == nil {
			_, err = stream.Recv() // whatever it is: the stream is known by now
		}
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	create := func(ctx context.Context) error {
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: "pool"},
		})
		return err
	}
	for create(ctx) != nil { // it does not lead yet
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	honest := say(holdRequest(1))
	elsewhere, alike := holdRequest(1), holdRequest(1)
	elsewhere.Namespace = "pond"
	alike.Holder.Owner = "b"
	say(elsewhere)
	// It is not answered in the session of another, so that there is nothing to receive.
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err == nil {
		err = stream.Send(alike)
	}
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(3) {
		r := holdRequest(1)
		r.Seq = seq + 2
		if err := honest.Send(r); err != nil {
			t.Fatal(err)
		}
		if _, err := honest.Recv(); err != nil {
			t.Fatalf("the stream of the first has ended: %v", err)
		}
	}
}
