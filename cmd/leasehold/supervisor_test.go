//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A manager notifies systemd when it serves, and when it stops.
func TestSystemdNotifications(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // the path of a socket has a small maximum length
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	notifications, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notifications.Close() //nolint:errcheck // it was read
	t.Setenv("NOTIFY_SOCKET", socket)
	want := func(state string) {
		t.Helper()
		if err := notifications.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		received := make([]byte, 1000)
		n, err := notifications.Read(received)
		if err != nil || !strings.HasPrefix(string(received[:n]), state) {
			t.Fatalf("systemd receives %q, want %q: %v", received[:n], state, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"manager", "run", "--listen", "127.0.0.1:0", "--http", "", "--data-dir", t.TempDir()}, io.Discard, io.Discard)
	}()
	want("READY=1\nSTATUS=a manager on 127.0.0.1:")
	stop()
	want("STOPPING=1")
	if status := <-ended; status != 0 {
		t.Errorf("manager run: exit status %d", status)
	}
}
