package leasegrpc

import (
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FuzzKeyHeader: the header is one key of 16 hexadecimal digits, or an error.
func FuzzKeyHeader(f *testing.F) {
	f.Add("00000000000000ff", "", false)
	f.Add("00000000000000FF", "00000000000000ff", true)
	f.Add("0x00000000000000", "", false)
	f.Add("+000000000000001", "", false)
	f.Fuzz(func(t *testing.T, one, two string, both bool) {
		md := metadata.MD{keyHeader: {one}}
		if both {
			md[keyHeader] = append(md[keyHeader], two)
		}
		key, there, err := header(metadata.NewIncomingContext(t.Context(), md))
		switch {
		case err != nil && leasehold.KindOf(err) != leasehold.ErrInvalid:
			t.Fatal(err)
		case err == nil && (both || !there || key.String() != strings.ToLower(one)):
			t.Fatalf("%q, %q, %t: key %v, there %t", one, two, both, key, there)
		}
	})
}

// FuzzKeyField: a path is invalid, or leads to one name in every message; a request without the
// name is an error.
func FuzzKeyField(f *testing.F) {
	f.Add("namespace", []byte("\x0a\x01n"))
	f.Add("holder.owner", []byte("\x12\x03\x0a\x01o"))
	f.Add("holder.session", []byte{})
	f.Add("holder..owner", []byte{})
	f.Add("leases.starts", []byte{})
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, path string, b []byte) {
		request := &leaseholdv1.HoldRequest{}
		p, err := newFieldPath("serve", "/s/m", request.ProtoReflect().Descriptor(), path)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		if proto.Unmarshal(b, request) != nil {
			return
		}
		first, err := p.key(request)
		second, again := p.key(proto.Clone(request))
		if first != second || (err == nil) != (again == nil) {
			t.Fatalf("%s: %v, %v and then %v, %v", path, first, err, second, again)
		}
		if _, err := p.key(&leaseholdv1.HoldRequest{}); err == nil {
			t.Fatalf("%s: an empty request has a key", path)
		}
	})
}

// FuzzMethodName: every method name has its configuration or the default.
func FuzzMethodName(f *testing.F) {
	m, err := newMethods("serve", map[string]Method{"/a.B/C": {Unkeyed: true}, "/a.D/": {Idempotent: true}})
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"/a.B/C", "/a.D/E", "/a.D/", "a.D", "", "/", "//", "/a.D/E/F"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if found := m.find(name); found.Unkeyed != (name == "/a.B/C") {
			t.Fatalf("%q is unkeyed: %t", name, found.Unkeyed)
		}
		service, short, err := split("serve", name)
		if err == nil && "/"+service+"/"+short != name {
			t.Fatalf("%q is parsed as method %q of %q", name, short, service)
		}
	})
}
