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
	"google.golang.org/protobuf/reflect/protoreflect"
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

// Limits on the messages within a message. An empty one takes two bytes on the
// wire and up to a hundred in memory, so that a limit on bytes alone would give
// a peer fifty times as much.
const (
	// maxRequestParts: as many static slots as a namespace may have, and a few
	// more.
	maxRequestParts = MaxStaticSlots + 64
	// maxResponseParts: as many holders as a table may have, or as many changes,
	// each with a holder of its own, and as much again.
	maxResponseParts = 1 << 18
)

// Unmarshal decodes a message, unless it has too many parts.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if err := c.guard(buf.ReadOnlyData(), m.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	return proto.Unmarshal(buf.ReadOnlyData(), m)
}

// guard refuses a message with too many parts. Each takes two bytes at least,
// so that a short message, which nearly all are, need not be counted.
func (c codec) guard(b []byte, d protoreflect.MessageDescriptor) error {
	if len(b)/2 > c.maxParts && countParts(b, d, c.maxParts) > c.maxParts {
		return leasehold.Errorf("decode", leasehold.ErrLimit, string(d.Name()), "it has more than %d parts", c.maxParts)
	}
	return nil
}

// countParts returns how many messages are in an encoded one of type d, at any
// depth, or some number above most as soon as there are more. It stops where
// the bytes make no sense: decoding them will, too.
func countParts(b []byte, d protoreflect.MessageDescriptor, most int) int {
	parts := 0
	for len(b) > 0 && parts <= most {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return parts
		}
		b = b[n:]
		field := d.Fields().ByNumber(number)
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return parts
		}
		if kind == protowire.BytesType && field != nil && field.Message() != nil {
			value, _ := protowire.ConsumeBytes(b)
			parts += 1 + countParts(value, field.Message(), most-parts-1)
		}
		b = b[n:]
	}
	return parts
}
