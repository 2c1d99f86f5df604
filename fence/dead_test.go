//go:build unix

package fence_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
)

// A process sends a request to a storage service, and is killed. Its death is proven, and the next owner writes. Then the
// service reads the request, which was in the kernel. Its write is refused, and without a fence it is not.
func testDeadWriter(t *testing.T, w world) {
	w.mustAppend(t, 7, "a")
	requests := sendAndDie(t, "alice 7 a-late")
	w.mustAppend(t, 8, "b")

	var resource, line string
	var g leasehold.Generation
	if _, err := fmt.Fscanln(requests, &resource, &g, &line); err != nil {
		t.Fatal(err)
	}
	fencetest.WantKind(t, w.Append(t.Context(), resource, g, line), leasehold.ErrStale)
	w.wantLines(t, "a b")
	w.exec(t, "INSERT INTO %s_lines (resource, line) VALUES ('"+resource+"', '"+line+"')")
	w.wantLines(t, "a b a-late")
}

// sendAndDie starts a process that sends a request and is killed, waits for its end, and returns the connection that has
// the request.
func sendAndDie(t *testing.T, request string) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it was only used here
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the process has a copy
	service, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() }) // it was only read
	socket, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close() //nolint:errcheck // the process has a copy
	writer := exec.CommandContext(t.Context(), "sh", "-c", `echo "$1" >&3; kill -9 $$`, "sh", request)
	writer.ExtraFiles = []*os.File{socket}
	if err := writer.Run(); writer.ProcessState.String() != "signal: killed" {
		t.Fatalf("%v, want killed", err)
	}
	return service
}
