package lan

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestResendWithin: the limit holds on its host, and on no other.
func TestResendWithin(t *testing.T) {
	_, hosts := network(t, "ann", "bob")
	addr := echo(t, hosts[1])
	if err := hosts[0].ResendWithin(2 * time.Second); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIPPED, NOT TESTED: it requires Linux 6.15, and a writable /proc/sys")
	} else if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2000, 120_000} {
		conn, err := dial(t, hosts[i], addr, patience)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var within int
		if failed := raw.Control(func(fd uintptr) { within, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS) }); failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		if within != want {
			t.Errorf("the retransmission timeout of %s is %d ms, want %d", hosts[i].Name, within, want)
		}
		var often []byte
		if err := hosts[i].Do(func() (err error) { often, err = os.ReadFile(resendsPath); return err }); err != nil {
			t.Fatal(err)
		}
		if most := strings.TrimSpace(string(often)) == strconv.Itoa(mostResends); most != (i == 0) {
			t.Errorf("the number of retransmissions of %s is %s", hosts[i].Name, often)
		}
	}
}
