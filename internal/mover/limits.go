package mover

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold/internal/wire"
)

// Bounds on what is sent. They are part of the protocol.
const (
	// MaxRecord is the longest record.
	MaxRecord = 4 << 20
	// Window is how much chunks may weigh together that are under way and that the
	// target's application has not taken, if they are more than one.
	Window = 1 << 20
	// maxChunk is how much a chunk weighs at most that has more than one record.
	maxChunk = 64 << 10
	// perRecord is what a record weighs besides its bytes: empty ones should not
	// be without number.
	perRecord = 4

	// maxMessage: a record, or a chunk and the sizes of its records.
	maxMessage = MaxRecord + maxChunk
)

// Bounds on what is done at a time.
const (
	// MaxTransfers is how many moves a server takes in at a time. It is also a
	// good bound for how many an owner should send.
	MaxTransfers = 64
	// maxStrangers is how many streams may be waiting to be let in.
	maxStrangers = 2 * MaxTransfers
)

// How long a server waits before it turns a stream away.
const (
	openingWait = 5 * time.Second // for its first message
	ticketWait  = 2 * time.Second // for the leader's word that it is expected, and for its turn
)

// How soon a source dials again.
const (
	leastBackoff = 20 * time.Millisecond
	mostBackoff  = time.Second
	dialWait     = 3 * time.Second // for one connection to come about
)

func serverOptions() []grpc.ServerOption {
	return append(wire.ServerOptions(),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(MaxTransfers+maxStrangers),
		grpc.WaitForHandlers(true),
	)
}

func dialOptions() []grpc.DialOption {
	return append(wire.DialOptions(),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessage), grpc.MaxCallRecvMsgSize(maxChunk)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: leastBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: mostBackoff},
			MinConnectTimeout: dialWait,
		}),
	)
}
