package daemon

import (
	"errors"
	"net"
	"os"

	"github.com/leasehold-dev/leasehold"
)

// ListenOn listens on the address of a flag; an empty one is nowhere.
func ListenOn(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		hint := "choose another with --" + flag
		if errors.Is(err, os.ErrPermission) {
			hint = "ports below 1024 are for root; " + hint
		}
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, addr, "%w; %s", err, hint)
	}
	return l, nil
}

func AddrOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}
