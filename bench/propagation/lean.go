package main

import (
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// news is a message of which only its size, and the number of the change that it
// tells of, are read. The number is 0 if it tells of none.
type news struct {
	number uint64
	bytes  int
}

// A path is the fields in which a number is found, from the outermost.
type path []protowire.Number

// The numbers of changes: FollowResponse.update.lsn, WatchResponse.header.revision,
// and that of the bare push.
var (
	leaseholdPath = path{2, 5}
	etcdPath      = path{1, 3}
	pushPath      = path{1}
)

// lean is a codec that reads of a message no more than a number: ten thousand
// lookups that read all of it, on the computer of the server, would measure
// themselves. What is sent is encoded as usual, or is encoded already.
type lean struct {
	encoding.CodecV2
	path path
}

func newLean(p path) lean { return lean{encoding.GetCodecV2(encodingproto.Name), p} }

func (l lean) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return l.CodecV2.Marshal(v)
}

func (l lean) Unmarshal(data mem.BufferSlice, v any) error {
	n, ok := v.(*news)
	if !ok {
		return l.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	n.bytes, n.number = buf.Len(), l.path.find(buf.ReadOnlyData())
	return nil
}

// find returns the number at the end of the path; 0 if there is none.
func (p path) find(b []byte) uint64 {
	for _, want := range p[:len(p)-1] {
		inner, n := protowire.ConsumeBytes(field(b, want))
		if n < 0 {
			return 0
		}
		b = inner
	}
	number, n := protowire.ConsumeVarint(field(b, p[len(p)-1]))
	if n < 0 {
		return 0
	}
	return number
}

// field returns what follows on the tag of a field, nothing if it is not there.
func field(b []byte, want protowire.Number) []byte {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		b = b[n:]
		if number == want {
			return b
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return nil
		}
		b = b[n:]
	}
	return nil
}
