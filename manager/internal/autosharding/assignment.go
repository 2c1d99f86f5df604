package autosharding

import (
	"encoding/binary"
	"encoding/hex"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// maxChunk is the maximum size of a message. The default limit of gRPC clients is 4 MiB; smaller
// messages let other streams of a connection proceed.
const maxChunk = 256 << 10

// The field numbers of the messages; a test compares them with the schema.
const (
	responseChunk    protowire.Number = 2
	responseMetadata protowire.Number = 3

	metadataGeneration protowire.Number = 1

	chunkSlices    protowire.Number = 1
	chunkEndpoints protowire.Number = 2

	endpointName protowire.Number = 1

	assignedSlice     protowire.Number = 1
	assignedEndpoints protowire.Number = 2

	sliceStart protowire.Number = 1
	sliceEnd   protowire.Number = 2

	endpointIndex protowire.Number = 1
)

// An assignment is an encoded table. Its messages are shared by all clients.
type assignment struct {
	generation int64
	messages   [][]byte // chunks, and the metadata
	size       int      // bytes of all messages

	// The following are guarded by the feed's lock.
	senders int           // clients to which it is being sent
	cut     chan struct{} // closed to end them
}

// encode returns the assignment of a table. It fails if the LSN is not a generation.
func encode(t *table.Table) (*assignment, error) {
	if t.LSN() == 0 || t.LSN() > math.MaxInt64 {
		return nil, leasehold.Errorf("encode assignment", leasehold.ErrInternal, "", "LSN %d is not a generation", t.LSN())
	}
	a := &assignment{generation: int64(t.LSN()), cut: make(chan struct{})}
	e := encoder{assignment: a, endpoints: make(map[string]int)}
	for r, entry := range t.All() {
		addr := ""
		if !entry.Vacant() {
			addr = entry.Holder.Addr
		}
		e.add(r.Start, addr, entry.Vacant())
	}
	e.endSlice(nil)
	e.endChunk()
	metadata := protowire.AppendTag(nil, metadataGeneration, protowire.VarintType)
	e.message(responseMetadata, protowire.AppendVarint(metadata, uint64(a.generation)))
	return a, nil
}

// An encoder appends slices to chunks.
type encoder struct {
	*assignment
	chunk     []byte
	endpoints map[string]int // indexes by address

	// The slice that has begun and whose end is not known.
	start  []byte
	addr   string
	vacant bool
	begun  bool

	end, slice, bounds, state []byte // buffers
}

// add adds a range, as a slice or to the one before.
func (e *encoder) add(start leasehold.Key, addr string, vacant bool) {
	if e.begun && e.addr == addr && e.vacant == vacant {
		return
	}
	if !e.begun {
		e.begun, e.addr, e.vacant = true, addr, vacant // starts at the empty key
		return
	}
	e.end = appendKey(e.end[:0], start)
	e.endSlice(e.end)
	e.start, e.end = e.end, e.start
	e.addr, e.vacant = addr, vacant
}

// appendKey appends the header value of a key.
func appendKey(b []byte, k leasehold.Key) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(k))
	return hex.AppendEncode(b, raw[:])
}

// endSlice writes the slice that has begun; nil is the end of the key space.
func (e *encoder) endSlice(end []byte) {
	e.bounds = e.bounds[:0]
	if len(e.start) > 0 {
		e.bounds = appendBytes(e.bounds, sliceStart, e.start)
	}
	if end != nil {
		e.bounds = appendBytes(e.bounds, sliceEnd, end)
	}
	e.slice = appendBytes(e.slice[:0], assignedSlice, e.bounds)
	var endpoint []byte
	if !e.vacant {
		index, known := e.endpoints[e.addr]
		if !known {
			index = len(e.endpoints)
			e.endpoints[e.addr] = index
			endpoint = appendBytes(nil, chunkEndpoints, appendBytes(nil, endpointName, []byte(e.addr)))
		}
		e.state = protowire.AppendTag(e.state[:0], endpointIndex, protowire.VarintType)
		e.slice = appendBytes(e.slice, assignedEndpoints, protowire.AppendVarint(e.state, uint64(index)))
	}
	if len(e.chunk)+len(e.slice)+len(endpoint)+overhead > maxChunk {
		e.endChunk()
	}
	e.chunk = append(appendBytes(e.chunk, chunkSlices, e.slice), endpoint...)
}

// overhead is more than the size of the tags and lengths around a slice and a chunk.
const overhead = 32

func (e *encoder) endChunk() {
	e.message(responseChunk, e.chunk)
	e.chunk = e.chunk[:0]
}

// message adds a message with one field.
func (e *encoder) message(field protowire.Number, content []byte) {
	m := appendBytes(make([]byte, 0, len(content)+overhead), field, content)
	e.messages, e.size = append(e.messages, m), e.size+len(m)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}
