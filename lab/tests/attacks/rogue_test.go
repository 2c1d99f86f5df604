//go:build linux

package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// A rogue speaks HTTP/2 frame by frame, and need not keep to its rules.
type rogue struct {
	*http2.Framer
	t     *testing.T
	conn  net.Conn
	out   *bufio.Writer
	block bytes.Buffer // of headers, as they are packed
	pack  *hpack.Encoder
	cut   error // why it cannot write any more
}

// newRogue has said nothing yet.
func newRogue(t *testing.T, conn net.Conn) *rogue {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	r := &rogue{t: t, conn: conn, out: bufio.NewWriterSize(conn, 64<<10)}
	r.Framer = http2.NewFramer(r, conn)
	r.AllowIllegalWrites = true
	r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.pack = hpack.NewEncoder(&r.block)
	return r
}

// Write writes into the buffer. Whoever is cut off goes on without noticing: what the other
// side has said about it is read in the end.
func (r *rogue) Write(p []byte) (int, error) {
	if r.cut == nil {
		_, r.cut = r.out.Write(p)
	}
	return len(p), nil
}

func (r *rogue) flush() {
	if r.cut == nil {
		r.cut = r.out.Flush()
	}
}

// greet introduces itself as it should.
func (r *rogue) greet() {
	_, _ = r.Write([]byte(http2.ClientPreface))
	_ = r.WriteSettings()
}

// fields are headers, in order, name and value in turn.
type fields []string

// head is what the headers of a call to a method begin with.
func head(method string, more ...string) fields {
	return append(fields{":method", "POST", ":scheme", "http", ":path", method, ":authority", "manager", "content-type", "application/grpc", "te", "trailers"}, more...)
}

// packed returns headers as they are sent.
func (r *rogue) packed(f fields) []byte {
	r.block.Reset()
	for i := 0; i < len(f); i += 2 {
		_ = r.pack.WriteField(hpack.HeaderField{Name: f[i], Value: f[i+1]}) // a buffer takes all
	}
	return bytes.Clone(r.block.Bytes())
}

// open opens a stream.
func (r *rogue) open(stream uint32, f fields) {
	_ = r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.packed(f), EndHeaders: true})
}

// message returns a message of gRPC that says to be of some length.
func message(compressed byte, length int, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(length)), body...)
}

// say sends a message, whole.
func (r *rogue) say(stream uint32, body []byte) {
	_ = r.WriteData(stream, false, message(0, len(body), body))
}

// outcome reads what comes of a stream: a status, a reset, a goaway, or that the connection
// is closed.
func (r *rogue) outcome(stream uint32) string {
	r.flush()
	goaway := ""
	for {
		f, err := r.ReadFrame()
		var broken http2.StreamError
		switch {
		case errors.As(err, &broken):
			continue // headers that are too long for us
		case err != nil && goaway != "":
			return goaway
		case err != nil:
			return r.ending(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if said := statusOf(f); said != "" && f.StreamID == stream {
				return said
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "reset " + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			if goaway = fmt.Sprintf("goaway %v %s", f.ErrCode, f.DebugData()); f.ErrCode != http2.ErrCodeNo {
				return goaway
			}
		}
	}
}

func (r *rogue) ending(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		r.t.Fatalf("nothing has come of it within %v", patience)
	}
	return "closed"
}

// statusOf is what headers say about the end of a call, "" if it goes on.
func statusOf(f *http2.MetaHeadersFrame) string {
	var code, text, http string
	for _, h := range f.Fields {
		switch h.Name {
		case "grpc-status":
			code = h.Value
		case "grpc-message":
			text, _ = url.PathUnescape(h.Value)
		case ":status":
			http = h.Value
		}
	}
	switch {
	case code == "" && http != "200":
		return "http " + http
	case code == "":
		return ""
	}
	return "status " + code + " " + text
}

// send sends a message of ours.
func (r *rogue) send(stream uint32, m proto.Message) {
	body, err := proto.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	r.long(stream, body)
}

// long sends a message in as many frames as it takes.
func (r *rogue) long(stream uint32, body []byte) {
	rest := message(0, len(body), body)
	for len(rest) > 0 {
		n := min(len(rest), 16<<10)
		_ = r.WriteData(stream, false, rest[:n])
		rest = rest[n:]
	}
}

// bomb sends few bytes that become many: a megabyte for each of them.
func (r *rogue) bomb(stream uint32) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 8 {
		_, _ = z.Write(make([]byte, 1<<20)) // a buffer takes all
	}
	_ = z.Close()
	_ = r.WriteData(stream, true, message(1, packed.Len(), packed.Bytes()))
}
