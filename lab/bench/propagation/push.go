package main

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Pusher is a gRPC server that sends the same bytes to all listeners, and does nothing
// else: what any server on gRPC must do. It is exported for net/rpc.
type Pusher struct {
	server *grpc.Server
	addr   string
	served chan struct{} // closed when it serves no more

	mu      sync.Mutex
	number  uint64
	streams map[chan []byte]bool
}

// raw is the codec of messages that are encoded already.
type raw struct{ encoding.CodecV2 }

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// startPusher listens. Its buffers are as small as a manager's, which suits many
// connections.
func startPusher(context.Context, struct{}) (*Pusher, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Pusher{
		server: grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.ReadBufferSize(2<<10)), addr: l.Addr().String(),
		served: make(chan struct{}), number: 1, streams: make(map[chan []byte]bool),
	}
	p.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Push", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Listen", Handler: p.listen, ServerStreams: true, ClientStreams: true}},
	}, p)
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // until it is stopped
	}()
	return p, nil
}

// listen serves one stream: the number of the last change, and then what is pushed.
func (p *Pusher) listen(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(nil); err != nil {
		return err
	}
	mailbox := make(chan []byte, 4)
	p.mu.Lock()
	p.streams[mailbox] = true
	first := message(p.number, 0)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, mailbox)
	}()
	if err := stream.SendMsg(first); err != nil {
		return err
	}
	for {
		select {
		case m := <-mailbox:
			if err := stream.SendMsg(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// message is so many bytes, with a number in them, or as few as there can be.
func message(number uint64, size int) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), number)
	rest := size - len(b) - protowire.SizeTag(2)
	rest -= protowire.SizeVarint(uint64(max(0, rest)))
	if rest <= 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), make([]byte, rest))
}

// Addr is where it serves clients.
func (p *Pusher) Addr() string { return p.addr }

// Change pushes a change of so many bytes.
func (p *Pusher) Change(bytes int, c *Change) error {
	begin := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	m := message(p.number, bytes)
	for mailbox := range p.streams {
		mailbox <- m
	}
	*c = Change{begin, p.number}
	return nil
}

// Close ends the server.
func (p *Pusher) Close() error {
	p.server.Stop()
	<-p.served
	return nil
}
