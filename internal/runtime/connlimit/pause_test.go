package connlimit

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/peer"
)

// withConnection calls test with both ends of an established connection and the context of a call on it.
func withConnection(t *testing.T, test func(dropped map[Reason]int, client, server net.Conn, call context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		dropped := make(map[Reason]int)
		l := New(d, Config{Dropped: func(why Reason) { dropped[why]++ }})
		defer l.Close() //nolint:errcheck // end of the test
		client, server, err := d.handshake(t, l, "spiffe://d/a")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()                                      //nolint:errcheck // end of the test
		if _, err := server.Read(make([]byte, 100)); err != nil { // the HTTP/2 preface
			t.Fatal(err)
		}
		test(dropped, client, server, peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
	})
}

// timeRead returns the duration of a read of one byte.
func timeRead(client, server net.Conn) (time.Duration, error) {
	begun := time.Now()
	go func() { _, _ = client.Write([]byte("x")) }()
	_, err := server.Read(make([]byte, 1))
	return time.Since(begun), err
}

// The longest of several pauses applies, once.
func TestSlowPausesReading(t *testing.T) {
	withConnection(t, func(_ map[Reason]int, client, server net.Conn, call context.Context) {
		for range callsPerSecond {
			Slow(call, time.Hour) // no effect below the rate
		}
		if took, err := timeRead(client, server); err != nil || took != 0 {
			t.Errorf("read below the rate: %v, %v", took, err)
		}
		Slow(call, time.Second)
		Slow(call, 3*time.Second)
		Slow(call, 2*time.Second)
		if took, err := timeRead(client, server); err != nil || took != 3*time.Second {
			t.Errorf("read during the pause: %v, %v", took, err)
		}
		if took, err := timeRead(client, server); err != nil || took != 0 {
			t.Errorf("read after the pause: %v, %v", took, err)
		}
		Slow(context.Background(), time.Second) // not of a Listener
		if took, err := timeRead(client, server); err != nil || took != 0 {
			t.Errorf("read after a call of another connection: %v, %v", took, err)
		}
	})
}

// Close ends a pause.
func TestCloseEndsPause(t *testing.T) {
	withConnection(t, func(_ map[Reason]int, _, server net.Conn, call context.Context) {
		for range callsPerSecond + 1 {
			Slow(call, time.Hour)
		}
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			_ = server.Close()
			_ = server.Close() // servers close twice
		}()
		_, err := server.Read(make([]byte, 1))
		if err == nil || time.Since(begun) != time.Second {
			t.Errorf("read ended after %v: %v", time.Since(begun), err)
		}
	})
}

// Rejected calls above the rate pause reading. Many more close the connection after a delay
// for the last reply.
func TestRefusedPausesAndCloses(t *testing.T) {
	withConnection(t, func(dropped map[Reason]int, client, server net.Conn, call context.Context) {
		refused := func(n int) (time.Duration, error) {
			for range n {
				Refused(call)
			}
			return timeRead(client, server)
		}
		if took, err := refused(20); err != nil || took != 0 {
			t.Errorf("read after 20 rejected calls: %v, %v", took, err)
		}
		if took, err := refused(20); err != nil || took != 2*time.Second {
			t.Errorf("read after 20 more: %v, %v", took, err)
		}
		if took, err := refused(100); err != nil || took != 10*time.Second {
			t.Errorf("read after 100 more: %v, %v", took, err)
		}
		if took, err := refused(110); !errors.Is(err, io.EOF) || took != 10*time.Second {
			t.Errorf("read after 110 more: %v, %v", took, err)
		}
		if dropped[Refusals] != 1 || len(dropped) != 1 {
			t.Errorf("dropped: %v", dropped)
		}
	})
}

// Dropping a connection ends its pause.
func TestDropEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, Config{MaxAnonymous: 1})
		defer l.Close() //nolint:errcheck // end of the test
		client, server, err := d.handshake(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // end of the test
		call := peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()})
		for range 100 {
			Refused(call)
		}
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			another, _, _ := d.handshake(t, l, "") // replaces the first
			_ = another.Close()
		}()
		for err == nil {
			_, err = server.Read(make([]byte, 100))
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("read ended after %v", took)
		}
	})
}
