package main

import (
	"context"
	"flag"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// A pusher is a gRPC server that sends the same bytes to all who listen, and does
// nothing else: what any server on gRPC must do.
type pusher struct {
	server *grpc.Server
	served chan struct{} // closed when it serves no more

	mu      sync.Mutex
	number  uint64
	streams map[chan []byte]bool
}

// startPusher listens. Its buffers are as small as a manager's, which suits many
// connections.
func startPusher(_ context.Context, args []string) (cast.Member, string, error) {
	if err := flag.NewFlagSet("pusher", flag.ContinueOnError).Parse(args); err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p := &pusher{
		server: grpc.NewServer(grpc.ForceServerCodecV2(newLean(pushPath)), grpc.ReadBufferSize(2<<10)),
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
	return p, l.Addr().String(), nil
}

// listen serves one stream: the number of the last change, and then what is pushed.
func (p *pusher) listen(_ any, stream grpc.ServerStream) error {
	var hello news
	if err := stream.RecvMsg(&hello); err != nil {
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

// Obey pushes a change.
func (p *pusher) Obey(_ context.Context, o cast.Order) (cast.Answer, error) {
	if o.Do != orderChange {
		return cast.Answer{}, cast.UnknownOrder(o)
	}
	begin := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	m := message(p.number, o.Batch)
	for mailbox := range p.streams {
		mailbox <- m
	}
	return cast.Answer{Begin: begin.UnixNano(), Number: p.number}, nil
}

func (p *pusher) Close() error {
	p.server.Stop()
	<-p.served
	return nil
}
