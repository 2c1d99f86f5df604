package lan

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
)

// A Host is a network namespace with one address, and a thread of this process in it: processes and sockets
// that the thread starts belong to the namespace. Its methods are safe for concurrent use.
type Host struct {
	Name string
	Addr netip.Addr

	device  io.ReadWriteCloser
	visit   func(do func()) error // runs a function in the namespace, on any thread
	leave   func() error          // moves the host's thread back to its original namespace
	reading sync.WaitGroup

	work   chan func()
	ending sync.Once
	ended  chan struct{} // the thread has left
	left   error         // error of leave; read after ended
}

// errEnded is the error of a closed host.
var errEnded = errors.New("the host is closed")

func newHost(name string, addr netip.Addr) (*Host, error) {
	h := &Host{Name: name, Addr: addr, work: make(chan func()), ended: make(chan struct{})}
	made := make(chan error)
	go func() {
		defer close(h.ended)
		err := h.enterNamespace()
		made <- err
		if err != nil {
			return
		}
		for do := range h.work {
			do()
		}
		h.left = h.leave()
	}()
	if err := <-made; err != nil {
		return nil, err
	}
	return h, nil
}

// Do calls a function on the host's thread, before the network is closed.
func (h *Host) Do(do func() error) error {
	done := make(chan error, 1)
	select {
	case h.work <- func() { done <- do() }:
		return <-done
	case <-h.ended:
		return errEnded
	}
}

// Dial connects from the host to an IP address. It does not use the host's thread, so it blocks no other call.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var conn net.Conn
	var failed error
	err := h.visit(func() { conn, failed = new(net.Dialer).DialContext(ctx, network, addr) })
	return conn, errors.Join(failed, err)
}

// At returns the address of a port of the host.
func (h *Host) At(port uint16) string { return netip.AddrPortFrom(h.Addr, port).String() }

// deliver delivers a packet to the host. A packet that the device rejects is lost.
func (h *Host) deliver(packet []byte) { _, _ = h.device.Write(packet) }

func (h *Host) close() {
	h.ending.Do(func() {
		close(h.work)
		<-h.ended
		_ = errors.Join(h.left, h.device.Close()) // the host is not usable any more
		h.reading.Wait()
	})
}
