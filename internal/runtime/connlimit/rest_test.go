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

// resting calls test with a connection that has introduced itself, and with the context of a
// call that has come on it.
func resting(t *testing.T, test func(dropped map[Reason]int, client, server net.Conn, call context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		dropped := make(map[Reason]int)
		l := New(d, Config{Dropped: func(why Reason) { dropped[why]++ }})
		defer l.Close() //nolint:errcheck // it is over
		client, server, err := d.greets(t, l, "spiffe://d/a")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()                                      //nolint:errcheck // it is over
		if _, err := server.Read(make([]byte, 100)); err != nil { // how HTTP/2 begins
			t.Fatal(err)
		}
		test(dropped, client, server, peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()}))
	})
}

// readIn returns how long it takes to read a byte that is there.
func readIn(client, server net.Conn) (time.Duration, error) {
	begun := time.Now()
	go func() { _, _ = client.Write([]byte("x")) }()
	_, err := server.Read(make([]byte, 1))
	return time.Since(begun), err
}

// A connection rests for as long as the longest rest that it was told to take, once.
func TestSlow(t *testing.T) {
	resting(t, func(_ map[Reason]int, client, server net.Conn, call context.Context) {
		for range callsPerSecond {
			Slow(call, time.Hour) // so many it may make
		}
		if took, err := readIn(client, server); err != nil || took != 0 {
			t.Errorf("at first a byte takes %v: %v", took, err)
		}
		Slow(call, time.Second)
		Slow(call, 3*time.Second)
		Slow(call, 2*time.Second)
		if took, err := readIn(client, server); err != nil || took != 3*time.Second {
			t.Errorf("the first byte takes %v: %v", took, err)
		}
		if took, err := readIn(client, server); err != nil || took != 0 {
			t.Errorf("the second byte takes %v: %v", took, err)
		}
		Slow(context.Background(), time.Second) // a call from elsewhere
		if took, err := readIn(client, server); err != nil || took != 0 {
			t.Errorf("the third byte takes %v: %v", took, err)
		}
	})
}

// A connection that is closed does not go on resting.
func TestSlowEnds(t *testing.T) {
	resting(t, func(_ map[Reason]int, _, server net.Conn, call context.Context) {
		for range callsPerSecond + 1 {
			Slow(call, time.Hour)
		}
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			_ = server.Close()
			_ = server.Close() // as servers do
		}()
		_, err := server.Read(make([]byte, 1))
		if err == nil || time.Since(begun) != time.Second {
			t.Errorf("it ends after %v: %v", time.Since(begun), err)
		}
	})
}

// Some calls may be refused. For more, the connection rests; for far more it is closed, but
// not before they can be answered.
func TestRefused(t *testing.T) {
	resting(t, func(dropped map[Reason]int, client, server net.Conn, call context.Context) {
		refused := func(n int) (time.Duration, error) {
			for range n {
				Refused(call)
			}
			return readIn(client, server)
		}
		if took, err := refused(20); err != nil || took != 0 {
			t.Errorf("after 20 refusals reading takes %v: %v", took, err)
		}
		if took, err := refused(20); err != nil || took != 2*time.Second {
			t.Errorf("after 20 more it takes %v: %v", took, err)
		}
		if took, err := refused(100); err != nil || took != 10*time.Second {
			t.Errorf("after 100 more it takes %v: %v", took, err)
		}
		if took, err := refused(110); !errors.Is(err, io.EOF) || took != 10*time.Second {
			t.Errorf("after 110 more it takes %v: %v", took, err)
		}
		if dropped[Refusals] != 1 || len(dropped) != 1 {
			t.Errorf("dropped are %v", dropped)
		}
	})
}

// Nor does one that the gate drops.
func TestDroppedDoNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, Config{Strangers: 1})
		defer l.Close() //nolint:errcheck // it is over
		client, server, err := d.greets(t, l, "")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // it is over
		call := peer.NewContext(context.Background(), &peer.Peer{Addr: server.RemoteAddr()})
		for range 100 {
			Refused(call)
		}
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			another, _, _ := d.greets(t, l, "") // the one before goes
			_ = another.Close()
		}()
		for err == nil {
			_, err = server.Read(make([]byte, 100))
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it rests for %v", took)
		}
	})
}
