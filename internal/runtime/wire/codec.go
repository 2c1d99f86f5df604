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

// A Frame is an encoded message. A manager sends the same update to thousands of lookups: it encodes
// the update once and sends the frame with SendMsg on every stream, without copies. The server must have
// the [ServerOptions].
//
// A Frame is immutable and safe for concurrent use. The garbage collector frees it.
type Frame struct {
	shared []byte
	own    []byte // appended to shared; differs between streams
}

// Len returns the size of the frame on a stream.
func (f *Frame) Len() int { return len(f.shared) + len(f.own) }

// NewFrame returns a frame of an encoded message, which must not be changed afterwards.
func NewFrame(encoded []byte) *Frame { return &Frame{shared: encoded} }

// EncodeUpdate encodes the result of FromLookupReply.
func EncodeUpdate(r *protocol.LookupReply) (*Frame, error) {
	b, err := proto.Marshal(FromLookupReply(r))
	if err != nil {
		return nil, &leasehold.Error{Op: "encode update", Kind: leasehold.ErrInternal, Subject: string(r.Namespace), Err: err}
	}
	return &Frame{shared: b}, nil
}

// Answer returns the frame as the reply to one lookup's request: the same update with another echo and age.
// It copies nothing: in protobuf, fields of an appended message replace those of the message before it.
func (f *Frame) Answer(echo protocol.Seq, age time.Duration) *Frame {
	// Both fields are encoded even if they are 0, to replace the values of the update.
	var update []byte
	update = protowire.AppendTag(update, updateEcho, protowire.VarintType)
	update = protowire.AppendVarint(update, uint64(echo))
	update = protowire.AppendTag(update, updateAge, protowire.VarintType)
	update = protowire.AppendVarint(update, uint64(age))
	own := protowire.AppendTag(nil, responseUpdate, protowire.BytesType)
	return &Frame{shared: f.shared, own: protowire.AppendBytes(own, update)}
}

// The field numbers of Answer; a test compares them with the schema.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateAge      protowire.Number = 6
)

// A codec is gRPC's protobuf codec with support for frames. It rejects messages that need far more memory than their
// encoding.
type codec struct {
	encoding.CodecV2
	maxParts int
}

func newCodec(maxParts int) codec { return codec{encoding.GetCodecV2(encodingproto.Name), maxParts} }

// Marshal returns the wire form of a message, that of a frame without copying. A SliceBuffer has no
// reference count and returns to no pool, so any number of streams can read it concurrently.
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

// Limits of the number of nested messages. An empty one takes two bytes on the wire and up to a hundred in
// memory, so a limit of bytes alone would allow fifty times as much memory.
const (
	// maxRequestParts is the maximum number of static slots of a namespace and a few more.
	maxRequestParts = MaxStaticSlots + 64
	// maxResponseParts is twice the maximum number of holders of a table, or of changes with a holder
	// each.
	maxResponseParts = 1 << 18
)

// Unmarshal decodes a message. It rejects one with too many nested messages.
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

// guard rejects a message with too many parts. Each has at least two bytes, so short messages, which are
// nearly all, need no count.
func (c codec) guard(b []byte, d protoreflect.MessageDescriptor) error {
	if len(b)/2 > c.maxParts && countParts(b, d, c.maxParts) > c.maxParts {
		return leasehold.Errorf("decode", leasehold.ErrLimit, string(d.Name()), "it has more than %d parts", c.maxParts)
	}
	return nil
}

// countParts returns the number of nested messages in an encoded one of type d, at any depth, or any number
// above most. It stops at invalid bytes: decoding fails there, too.
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
