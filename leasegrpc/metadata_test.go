package leasegrpc_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// No header is sent on a stream whose lease has ended, as no message is.
func TestHeaderOutlivesItsLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		begun, goOn, sent := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
		n := c.Node("a")
		playWatch(t, n, func(stream grpc.ServerStream) error {
			begun <- struct{}{}
			<-goOn
			sent <- stream.SendHeader(metadata.Pairs("balance", "7"))
			return nil
		})
		c.Settle()
		methods := map[string]leasegrpc.Method{methodWatch: {KeyField: "value"}}
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: methods}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		n.Expire()
		close(goOn)
		if err := <-sent; status.Code(err) != codes.Unavailable {
			t.Errorf("it was sent: %v", err)
		}
		if md, _ := w.Header(); len(md.Get("balance")) > 0 {
			t.Errorf("it has arrived: %v", md)
		}
		_, err = w.next()
		wantError(t, err, codes.Unavailable, leasehold.Unavailable)
	})
}

// With a lease a header arrives.
func TestHeaderArrives(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		playWatch(t, c.Node("a"), func(stream grpc.ServerStream) error {
			return stream.SendHeader(metadata.Pairs("balance", "7"))
		})
		c.Settle()
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if md, err := w.Header(); err != nil || len(md.Get("balance")) != 1 {
			t.Errorf("got %v, %v", md, err)
		}
	})
}
