package wire

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A Frame is a FollowResponse that has been encoded already. A manager says the
// same to thousands of lookups: it encodes it once and sends the frame on every
// stream, with SendMsg, and all streams read the same bytes. The server must
// have the [ServerOptions].
//
// A Frame is immutable and safe for concurrent use. Its memory is freed when
// nobody refers to it any more.
type Frame struct {
	shared []byte
	own    []byte // follows on shared; what differs between streams
}

// Len returns how many bytes the frame takes on a stream.
func (f *Frame) Len() int { return len(f.shared) + len(f.own) }

// EncodeUpdate encodes what FromLookupReply writes.
func EncodeUpdate(r *protocol.LookupReply) (*Frame, error) {
	b, err := proto.Marshal(FromLookupReply(r))
	if err != nil {
		return nil, &leasehold.Error{Op: "encode update", Kind: leasehold.ErrInternal, Subject: string(r.Namespace), Err: err}
	}
	return &Frame{shared: b}, nil
}

// Answer returns the frame as an answer to one lookup's question: the same
// update with another echo and age. It copies nothing: in protobuf, a message
// followed by a second one that has a few of its fields is the message with
// those fields replaced.
func (f *Frame) Answer(echo protocol.Seq, age time.Duration) *Frame {
	// Both fields are written even if they are 0, to replace what is there.
	var update []byte
	update = protowire.AppendTag(update, updateEcho, protowire.VarintType)
	update = protowire.AppendVarint(update, uint64(echo))
	update = protowire.AppendTag(update, updateAge, protowire.VarintType)
	update = protowire.AppendVarint(update, uint64(age))
	own := protowire.AppendTag(nil, responseUpdate, protowire.BytesType)
	return &Frame{shared: f.shared, own: protowire.AppendBytes(own, update)}
}

// The field numbers that Answer writes; a test compares them with the schema.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateAge      protowire.Number = 6
)

// A codec is gRPC's protobuf codec, which also takes frames, and refuses
// messages that would grow out of all proportion when they are decoded.
type codec struct {
	encoding.CodecV2
	maxParts int
}

func newCodec(maxParts int) codec { return codec{encoding.GetCodecV2(encodingproto.Name), maxParts} }

// Marshal returns the wire form of a message, that of a frame without copying.
// A SliceBuffer is not counted and not returned to a pool, so that any number
// of streams may be at different places in it.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*Frame)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	out := mem.BufferSlice{mem.SliceBuffer(f.shared)}
	if len(f.own) > 0 {
		out = append(out, mem.SliceBuffer(f.own))
	}
	return out, nil
}
