package main

import (
	"errors"

	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// lean is a codec that reads of a message no more than the number of its last
// change: ten thousand lookups that read all of it, on the computer of the
// manager, would measure themselves.
type lean struct{ encoding.CodecV2 }

func newLean() lean { return lean{encoding.GetCodecV2(encodingproto.Name)} }

// heardOf is a FollowResponse of which only the number is read.
type heardOf struct{ lsn uint64 }

// The fields on the way to it.
const (
	responseUpdate protowire.Number = 2
	updateLSN      protowire.Number = 5
)

func (l lean) Unmarshal(data mem.BufferSlice, v any) error {
	h, ok := v.(*heardOf)
	if !ok {
		return l.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	update, ok := field(buf.ReadOnlyData(), responseUpdate)
	if !ok {
		return nil // no update
	}
	inner, n := protowire.ConsumeBytes(update)
	if n < 0 {
		return errors.New("an update that cannot be read")
	}
	if number, ok := field(inner, updateLSN); ok {
		h.lsn, _ = protowire.ConsumeVarint(number)
	}
	return nil
}

// field returns what follows on the tag of a field.
func field(b []byte, want protowire.Number) ([]byte, bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		b = b[n:]
		if number == want {
			return b, true
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return nil, false
		}
		b = b[n:]
	}
	return nil, false
}
