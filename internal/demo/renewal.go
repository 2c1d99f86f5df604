package demo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/secure"
)

// renewalPatience is how long processes may take to see that their files are new. They
// look every few seconds, and wait until the files stand still.
const (
	renewalPatience = 60 * time.Second
	renewalLook     = 500 * time.Millisecond
)

// renewCertificates replaces the certificates of all processes while they run, waits until
// all that live show the new ones, and counts the leases that it cost.
func (n *nemesis) renewCertificates(ctx context.Context) error {
	c := n.cluster
	before, err := c.photographed(ctx)
	if err != nil {
		return err
	}
	want, err := c.certificates.renew()
	if err != nil {
		return err
	}
	begin := time.Now()
	c.journal.add("all certificates were replaced on disk, with new keys")
	err = await(ctx, "waiting for new certificates", renewalPatience, func(ctx context.Context) (bool, error) {
		ok, err := c.allShow(ctx, want)
		if !ok {
			pause(ctx, renewalLook) // each look shakes hands with everybody
		}
		return ok, err
	})
	if err != nil {
		return err
	}
	lost, err := c.lostBy(ctx, before)
	if err != nil {
		return err
	}
	n.count(func(d *deeds) { d.renewed, d.lostToRenewal = d.renewed+len(want), d.lostToRenewal+lost })
	c.journal.add("all %d processes show their new certificates after %.1f s; %d leases were lost", len(want), time.Since(begin).Seconds(), lost)
	return nil
}

// allShow says whether every process shows the certificate that it should. Those that are
// dead or stopped come back, and are waited for.
func (c *cluster) allShow(ctx context.Context, want map[string]string) (bool, error) {
	shows := make(map[string]func() (string, error))
	for _, m := range c.managers {
		shows[m.Name] = func() (string, error) { return c.certificates.managerShows(ctx, m.addr) }
	}
	owners, err := c.admin.owners(ctx)
	if err != nil {
		return false, err
	}
	for _, o := range owners {
		if takesPart(o) {
			shows[o.GetHolder().GetOwner()] = func() (string, error) { return c.certificates.ownerShows(ctx, o.GetHolder().GetAddr()) }
		}
	}
	for name, serial := range want {
		ask := shows[name]
		if ask == nil {
			return false, errors.New(name + " takes no part")
		}
		is, err := ask()
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if is != serial {
			return false, fmt.Errorf("%s shows the certificate %s and not %s", name, is, serial)
		}
	}
	return true, nil
}

// managerShows and ownerShows connect, and return the serial number of the certificate
// that is shown.
func (c *certificates) managerShows(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(c.ordering()))...)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	var who peer.Peer
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&who)); err != nil {
		return "", err
	}
	info, ok := who.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return "", fmt.Errorf("a connection with %T is not one of TLS", who.AuthInfo)
	}
	return serial(&info.State), nil
}

func (c *certificates) ownerShows(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	conn, err := c.dialTLS(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing was said
	over, ok := conn.(*tls.Conn)
	if !ok {
		return "", fmt.Errorf("a connection of type %T is not one of TLS", conn)
	}
	state := over.ConnectionState()
	return serial(&state), nil
}

func serial(state *tls.ConnectionState) string {
	return secure.Describe(state.PeerCertificates[0]).Serial
}
