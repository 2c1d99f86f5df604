package wire

import (
	"github.com/leasehold-dev/leasehold"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

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
