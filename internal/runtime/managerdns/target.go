// Package managerdns resolves the addresses of a manager group, and follows their changes in DNS.
//
// A target is one of:
//
//	host:port                     one manager
//	dns:///host:port              a manager at each A or AAAA record of the host
//	srv:///_service._proto.name   a manager at each SRV record, with its host and port
//
// The syntax is that of gRPC targets without an authority. A headless service of Kubernetes has both kinds of
// records. Prefer SRV records with TLS: the addresses keep the host names, which certificates contain.
package managerdns

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
)

// A Resolver is a [net.Resolver], or one of a test.
type Resolver interface {
	LookupHost(ctx context.Context, host string) (addrs []string, err error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// A target is a parsed target.
type target struct {
	text string
	kind kind
	name string // the host, or the name of SRV records
	port string // not for SRV
}

type kind int

const (
	fixed kind = iota
	hosts
	services
)

// Check returns an error if a target is invalid. The example appears in error messages.
func Check(text, example string) error {
	_, err := parse(text, example)
	return err
}

// parse parses a target.
func parse(text, example string) (target, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return target{text: text, kind: fixed}, address.Check(text, example)
	}
	endpoint, rooted := strings.CutPrefix(rest, "/")
	switch {
	case scheme != "dns" && scheme != "srv":
		return target{}, fmt.Errorf("%q: want host:port, dns:///host:port or srv:///_service._proto.name", text)
	case !rooted || strings.Contains(endpoint, "/"):
		return target{}, fmt.Errorf("%q: want three slashes after %s, and none in the name: the system's DNS servers are used", text, scheme)
	case scheme == "dns":
		if err := address.Check(endpoint, example); err != nil {
			return target{}, fmt.Errorf("%q: %w", text, err)
		}
		host, port, _ := net.SplitHostPort(endpoint) // it is valid
		if host == "" {
			return target{}, fmt.Errorf("%q: the host is missing: want dns:///host:port", text)
		}
		return target{text, hosts, host, port}, nil
	case !validService(endpoint):
		return target{}, fmt.Errorf("%q: want the name of SRV records, such as srv:///_leasehold._tcp.example.org", text)
	}
	return target{text: text, kind: services, name: endpoint}, nil
}

// validService reports whether a name has the form of SRV records: _service._proto.name.
func validService(name string) bool {
	labels := strings.SplitN(name, ".", 3)
	return len(labels) == 3 && labels[2] != "" && address.Check(name+":1", "") == nil &&
		strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_")
}

// resolve returns the addresses of a target. No records are an error.
func (t *target) resolve(ctx context.Context, r Resolver) (addrs []string, err error) {
	switch t.kind {
	case hosts:
		var found []string // may be the resolver's own
		found, err = r.LookupHost(ctx, t.name)
		for _, host := range found {
			addrs = append(addrs, net.JoinHostPort(host, t.port))
		}
	case services:
		var records []*net.SRV
		_, records, err = r.LookupSRV(ctx, "", "", t.name)
		for _, s := range records { // net.Resolver returns valid records with an error about invalid ones
			addr := net.JoinHostPort(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port)))
			if !address.Wildcard(addr) && address.Check(addr, "") == nil { // "." means that the service does not exist
				addrs = append(addrs, addr)
			}
		}
	default:
		return []string{t.text}, nil
	}
	switch {
	case len(addrs) > 0:
		return addrs, nil
	case err == nil:
		err = fmt.Errorf("%s has no valid records", t.name)
	}
	return nil, err
}
