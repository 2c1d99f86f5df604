package leasegrpc

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/leasehold-dev/leasehold"
)

// A Method says what there is to know about the calls of a method. Callers and
// servers may share a map of them; each takes from it what concerns it.
type Method struct {
	// KeyField is the field of the request that has the name whose key the call is
	// about: "user", or "user.name" if it is in a message within. It is a string or
	// bytes, and the key is its [leasehold.KeyOf]. A caller's [WithKey] and [WithRawKey]
	// prevail over it. It is for methods with one request: unary ones, and those
	// that stream answers alone.
	//
	// Callers and servers should have the same, and servers first: a unary call does
	// not say its key besides if it is in the request, and a server that does not look
	// there refuses it.
	KeyField string

	// Idempotent says that it does no harm if a call is carried out twice. Then
	// callers also repeat one whose server was gone before it had answered, or had
	// its lease end meanwhile.
	Idempotent bool

	// Unkeyed lets a server's calls of the method pass without a key and without a
	// lease: health checks, for instance. Callers cannot make such calls through a
	// routed connection.
	Unkeyed bool
}

type method struct {
	Method
	path *fieldPath // nil without a KeyField
}

// methods finds methods by name. It is immutable.
type methods struct {
	exact    map[string]*method
	services map[string]*method // "/package.Service/"
	other    method             // what is not mentioned
}

// find returns what is known about a method, given as gRPC has it,
// "/package.Service/Method".
func (m *methods) find(name string) *method {
	if found := m.exact[name]; found != nil {
		return found
	}
	if len(m.services) > 0 {
		if found := m.services[name[:strings.LastIndexByte(name, '/')+1]]; found != nil {
			return found
		}
	}
	return &m.other
}

// newMethods checks all that is said about methods, so that nothing is left to be
// found wrong by a call.
func newMethods(op string, given map[string]Method) (*methods, error) {
	out := &methods{exact: map[string]*method{}, services: map[string]*method{}}
	for name, m := range given {
		service, short, ok := split(name)
		switch {
		case !ok:
			return nil, leasehold.Errorf(op, leasehold.ErrInvalid, name,
				`want a method as "/package.Service/Method", or all of a service as "/package.Service/"`)
		case m.KeyField != "" && m.Unkeyed:
			return nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "it is Unkeyed, and has the KeyField %q: want one of them", m.KeyField)
		case m.KeyField == "" && short == "":
			out.services[name] = &method{Method: m}
		case m.KeyField == "":
			out.exact[name] = &method{Method: m}
		default:
			if err := out.addKeyed(op, service, short, m, given); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// addKeyed adds a method, or all of a service that are not mentioned themselves,
// whose key is in a field.
func (m *methods) addKeyed(op, service, short string, one Method, given map[string]Method) error {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	described, ok := found.(protoreflect.ServiceDescriptor)
	if err != nil || !ok {
		return leasehold.Errorf(op, leasehold.ErrInvalid, service, "no such service is linked into this program: a KeyField needs its generated code")
	}
	list := described.Methods()
	if short != "" && list.ByName(protoreflect.Name(short)) == nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, service, "it has no method %q", short)
	}
	for i := range list.Len() {
		d := list.Get(i)
		name := "/" + service + "/" + string(d.Name())
		if _, itself := given[name]; short == "" && itself || short != "" && string(d.Name()) != short {
			continue
		}
		if d.IsStreamingClient() {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "it has a stream of requests, and is opened before the first: callers say its key with Key or RawKey, so remove its KeyField")
		}
		path, err := newFieldPath(op, name, d.Input(), one.KeyField)
		if err != nil {
			return err
		}
		m.exact[name] = &method{one, path}
	}
	return nil
}

// split takes a name apart; the method is empty if all of a service is meant.
func split(name string) (service, short string, ok bool) {
	if !strings.HasPrefix(name, "/") {
		return "", "", false
	}
	service, short, ok = strings.Cut(name[1:], "/")
	return service, short, ok && service != "" && !strings.Contains(short, "/")
}

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
	return cmp.Or(strings.Join(names, ", "), "none")
}

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
	var name string
	if value := r.Get(p.fields[last]); p.fields[last].Kind() == protoreflect.BytesKind {
		name = string(value.Bytes())
	} else {
		name = value.String()
	}
	if name == "" {
		return 0, fmt.Errorf("the request's field %q is empty, and has the name whose key the call is about", p.text)
	}
	return leasehold.KeyOf(name), nil
}
