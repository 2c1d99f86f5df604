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

// A Method configures a method. Callers and servers may share a map of them.
type Method struct {
	// KeyField is the path of the request's field that has the name: "user", or "user.name"
	// in an embedded message. It is a string or bytes, and the key is [leasehold.KeyOf] of
	// it. A caller's [WithKey] and [WithRawKey] override it. It is for methods with one
	// request: unary ones, and those that stream only responses.
	//
	// Callers and servers must have the same KeyField. Configure servers first: a unary call
	// with the key in the request has no header, and a server without the KeyField rejects
	// it.
	KeyField string

	// Idempotent permits that a call is executed twice. Callers then also retry a call whose
	// connection broke before the response, or whose lease ended during the call.
	Idempotent bool

	// Unkeyed exempts a method from the server's checks: its calls need neither a key nor a
	// lease. An example are health checks. They cannot be called through a routed
	// connection.
	Unkeyed bool
}

type method struct {
	Method
	path *fieldPath // nil without a KeyField
}

// methods are the configured methods.
type methods = byMethod[*method]

// A byMethod has a value for each method, by its full name. It is immutable.
type byMethod[T any] struct {
	exact    map[string]T
	services map[string]T // "/package.Service/"
	other    T            // the default
}

func newByMethod[T any](other T) *byMethod[T] {
	return &byMethod[T]{exact: map[string]T{}, services: map[string]T{}, other: other}
}

// set sets the value of a method, or of the other methods of a service: "/package.Service/".
func (m *byMethod[T]) set(op, name string, value T) error {
	_, short, err := split(op, name)
	switch {
	case err != nil:
		return err
	case short == "":
		m.services[name] = value
	default:
		m.exact[name] = value
	}
	return nil
}

// find returns the value of a method, "/package.Service/Method".
func (m *byMethod[T]) find(name string) T {
	if found, ok := m.exact[name]; ok {
		return found
	}
	if len(m.services) > 0 {
		if found, ok := m.services[name[:strings.LastIndexByte(name, '/')+1]]; ok {
			return found
		}
	}
	return m.other
}

// newMethods validates the configuration of methods completely, so that calls cannot fail
// because of it.
func newMethods(op string, given map[string]Method) (*methods, error) {
	out := newByMethod(&method{})
	for name, m := range given {
		var err error
		switch {
		case m.KeyField != "" && m.Unkeyed:
			err = leasehold.Errorf(op, leasehold.ErrInvalid, name, "Unkeyed and KeyField %q are both set: want one of them", m.KeyField)
		case m.KeyField == "":
			err = out.set(op, name, &method{Method: m})
		default:
			err = addKeyed(out, op, name, m, given)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addKeyed adds a method with a KeyField, or all methods of a service without an entry of
// their own.
func addKeyed(m *methods, op, name string, one Method, given map[string]Method) error {
	service, short, err := split(op, name)
	if err != nil {
		return err
	}
	list, err := linked(op, service, short, "a KeyField")
	if err != nil {
		return err
	}
	for i := range list.Len() {
		d := list.Get(i)
		name := "/" + service + "/" + string(d.Name())
		if _, itself := given[name]; short == "" && itself || short != "" && string(d.Name()) != short {
			continue
		}
		if d.IsStreamingClient() {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "a method with a stream of requests cannot have a KeyField: remove it, and set the key with WithKey or WithRawKey")
		}
		path, err := newFieldPath(op, name, d.Input(), one.KeyField)
		if err != nil {
			return err
		}
		m.exact[name] = &method{one, path}
	}
	return nil
}

// linked returns the methods of a service. It fails if the program has no generated code of the service, which
// the user needs, or if the service has no such method.
func linked(op, service, short, user string) (protoreflect.MethodDescriptors, error) {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	described, ok := found.(protoreflect.ServiceDescriptor)
	if err != nil || !ok {
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, service, "the service is not linked into this program: correct the name; %s needs its generated code", user)
	}
	list := described.Methods()
	if short != "" && list.ByName(protoreflect.Name(short)) == nil {
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, service, "it has no method %q", short)
	}
	return list, nil
}

// split returns the service and the method of a full name; the method is empty for a whole
// service.
func split(op, name string) (service, short string, err error) {
	rest, rooted := strings.CutPrefix(name, "/")
	service, short, ok := strings.Cut(rest, "/")
	if !rooted || !ok || service == "" || strings.Contains(short, "/") {
		return "", "", leasehold.Errorf(op, leasehold.ErrInvalid, name,
			`want a method as "/package.Service/Method", or all of a service as "/package.Service/"`)
	}
	return service, short, nil
}

// A fieldPath is the path from a request to its name. It is immutable.
type fieldPath struct {
	text   string
	input  protoreflect.MessageDescriptor
	fields []protoreflect.FieldDescriptor // messages; the last one is the name
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
			return nil, bad("%s is repeated: want a single field", f.FullName())
		case last && f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind:
			return nil, bad("%s is of type %v: want a string or bytes; set other keys with WithKey or WithRawKey", f.FullName(), f.Kind())
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
		return 0, fmt.Errorf("the request is a %T, not a protobuf message with the field %q", request, p.text)
	}
	r := m.ProtoReflect()
	if have := r.Descriptor(); have != p.input {
		return 0, fmt.Errorf("the request is a %s, want the %s that this program has linked", have.FullName(), p.input.FullName())
	}
	last := len(p.fields) - 1
	for _, f := range p.fields[:last] {
		r = r.Get(f).Message() // empty if it is not set
	}
	var name string
	if value := r.Get(p.fields[last]); p.fields[last].Kind() == protoreflect.BytesKind {
		name = string(value.Bytes())
	} else {
		name = value.String()
	}
	if name == "" {
		return 0, fmt.Errorf("the request's key field %q is empty", p.text)
	}
	return leasehold.KeyOf(name), nil
}
