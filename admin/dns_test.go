package admin_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// records is a resolver with the SRV records of one name.
type records []*net.SRV

func (*records) LookupHost(context.Context, string) ([]string, error) {
	return nil, errors.New("unused")
}

func (r *records) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	if len(*r) == 0 {
		return "", nil, errors.New("no such host")
	}
	return "", *r, nil
}

func (r *records) set(t *testing.T, managers ...*fake) {
	t.Helper()
	*r = nil
	for _, f := range managers {
		port, err := net.LookupPort("tcp", f.addr[len("127.0.0.1:"):])
		if err != nil {
			t.Fatal(err)
		}
		*r = append(*r, &net.SRV{Target: "127.0.0.1", Port: uint16(port)})
	}
}

// A name is resolved again when no manager responds: all managers can be replaced.
func TestManagersByName(t *testing.T) {
	owners := func() (*leaseholdv1.ListOwnersResponse, error) { return &leaseholdv1.ListOwnersResponse{}, nil }
	dns := &records{}
	c, err := admin.New(admin.Config{Managers: []string{"srv:///_leasehold._tcp.test"}, Resolver: dns})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Owners(t.Context(), "x"); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("without records: %v", err)
	}
	gone := start(t, &fake{owners: func() (*leaseholdv1.ListOwnersResponse, error) { return nil, status.Error(codes.Unavailable, "gone") }})
	dns.set(t, gone)
	if _, err := c.Owners(t.Context(), "x"); err == nil {
		t.Error("a manager without an answer has one")
	}
	next := start(t, &fake{owners: owners})
	dns.set(t, next)
	if _, err := c.Owners(t.Context(), "x"); err != nil {
		t.Errorf("after the replacement: %v", err)
	}
	*dns = nil // DNS fails: the last addresses are used
	if _, err := c.Owners(t.Context(), "x"); err != nil || len(next.called()) != 2 {
		t.Errorf("while DNS fails: %v", err)
	}
	if _, err := admin.New(admin.Config{Managers: []string{"dns:///nowhere"}}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a name without a port: %v", err)
	}
}
