package dashboard

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"sync"
)

// A frame is one server-sent event. It is encoded and compressed once, and shared by all viewers.
type frame struct {
	id    string
	event string
	body  func() any // not called twice

	once sync.Once
	text []byte

	packing sync.Once
	packed  []byte
}

// plain returns the frame as it is on the wire.
func (f *frame) plain() []byte {
	f.once.Do(func() {
		data, err := json.Marshal(f.body())
		if err != nil {
			panic(err) // numbers, strings, and structs of them
		}
		f.body = nil // it may hold on to a whole table
		f.text = fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", f.id, f.event, data)
	})
	return f.text
}

// gzipHeader begins a gzip stream of which nothing is known beforehand (RFC 1952).
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// compressed returns the frame as a part of a gzip stream that has begun with
// gzipHeader. It refers to nothing before itself, so that it fits into any.
func (f *frame) compressed(p *packer) []byte {
	plain := f.plain()
	f.packing.Do(func() { f.packed = p.pack(plain) })
	return f.packed
}

// A packer compresses one thing at a time: its tables are large.
type packer struct {
	mu     sync.Mutex
	out    bytes.Buffer
	writer *flate.Writer // nil until it is needed
}

// pack compresses to blocks that end on a byte, and are not the last of a stream.
func (p *packer) pack(plain []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
	if p.writer == nil {
		var err error
		if p.writer, err = flate.NewWriter(&p.out, flate.BestSpeed); err != nil {
			panic(err) // the level is one of theirs
		}
	} else {
		p.writer.Reset(&p.out)
	}
	// A buffer in memory takes everything.
	_, _ = p.writer.Write(plain)
	_ = p.writer.Flush()
	return bytes.Clone(p.out.Bytes())
}
