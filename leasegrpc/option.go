package leasegrpc

import (
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
)

// WithKey is the option of a call that is about a name: it goes to the owner of the
// name's [leasehold.KeyOf].
//
//	client.Add(ctx, request, leasegrpc.WithKey("alice"))
func WithKey(name string) grpc.CallOption { return WithRawKey(leasehold.KeyOf(name)) }

// WithRawKey is the option of a call that is about a key, for applications whose keys
// are no hashes of names.
func WithRawKey(key leasehold.Key) grpc.CallOption { return keyOption{key: key} }

// WithIdempotent is the option of a call that may be carried out twice. See
// [Method.Idempotent].
func WithIdempotent() grpc.CallOption { return idempotentOption{} }

type keyOption struct {
	grpc.EmptyCallOption
	key leasehold.Key
}

type idempotentOption struct{ grpc.EmptyCallOption }

// A call is what is known of a call before it is made.
type call struct {
	name       string
	method     *method
	key        leasehold.Key
	keyed      bool // an option has said the key
	idempotent bool
	maybe      bool // an attempt may have been carried out: no later one undoes that
}

// describe reads the options of a call. The last key prevails, as with gRPC's own.
func (c *client) describe(name string, options []grpc.CallOption) call {
	m := c.methods.find(name)
	out := call{name: name, method: m, idempotent: m.Idempotent}
	for _, o := range options {
		switch o := o.(type) {
		case keyOption:
			out.key, out.keyed = o.key, true
		case idempotentOption:
			out.idempotent = true
		}
	}
	return out
}

// find takes the key from the request, if no option has said it.
func (c *call) find(name string, request any) error {
	if c.keyed {
		return nil
	}
	if c.method.path == nil {
		return missingKey(name, "say it with the call option leasegrpc.WithKey, or give the method a KeyField")
	}
	key, err := c.method.path.key(request)
	if err != nil {
		return missingKey(name, err.Error())
	}
	c.key = key
	return nil
}
