package leasegrpc

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold-dev/leasehold"
)

// A fieldPath leads from a request to the name in it. It is immutable.
type fieldPath struct {
	text   string
	input  protoreflect.MessageDescriptor
	fields []protoreflect.FieldDescriptor // messages, and last the name
}

func newFieldPath(op, method string, input protoreflect.MessageDescriptor, text string) (*fieldPath, error) {
	p := &fieldPath{text: text, input: input}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, method, "KeyField %q: %w", text, fmt.Errorf(format, args...))
	}
	parts := strings.Split(text, ".")
	for i, part := range parts {
		f := input.Fields().ByName(protoreflect.Name(part))
		switch last := i == len(parts)-1; {
		case f == nil:
			return nil, bad("%s has no field %q; it has %s", input.FullName(), part, fieldNames(input))
		case f.Cardinality() == protoreflect.Repeated:
			return nil, bad("%s is there more than once: want one field, of one name", f.FullName())
		case last && f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind:
			return nil, bad("%s is of type %v: want a string or bytes; callers can say other keys with Key or RawKey", f.FullName(), f.Kind())
		case !last && f.Message() == nil:
			return nil, bad("%s is of type %v, which has no fields", f.FullName(), f.Kind())
		default:
			p.fields = append(p.fields, f)
			input = f.Message()
		}
	}
	return p, nil
}

func fieldNames(d protoreflect.MessageDescriptor) string {
	var names []string
	for i := range d.Fields().Len() {
		names = append(names, string(d.Fields().Get(i).Name()))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// key returns the key of the name in a request.
func (p *fieldPath) key(request any) (leasehold.Key, error) {
	m, ok := request.(proto.Message)
	if !ok {
		return 0, fmt.Errorf("the request is a %T and no message of protocol buffers, so its field %q is not known", request, p.text)
	}
	r := m.ProtoReflect()
	if have := r.Descriptor(); have != p.input {
		return 0, fmt.Errorf("the request is a %s, want the %s that this program has linked", have.FullName(), p.input.FullName())
	}
	last := len(p.fields) - 1
	for _, f := range p.fields[:last] {
		r = r.Get(f).Message() // empty if it is not there
	}
	name := text(r, p.fields[last])
	if name == "" {
		return 0, fmt.Errorf("the request's field %q is empty, and has the name whose key the call is about", p.text)
	}
	return leasehold.KeyOf(name), nil
}

// text is what a field has, a string or bytes.
func text(m protoreflect.Message, f protoreflect.FieldDescriptor) string {
	if f.Kind() == protoreflect.BytesKind {
		return string(m.Get(f).Bytes())
	}
	return m.Get(f).String()
}
