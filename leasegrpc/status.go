package leasegrpc

import (
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/keybalancer"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// Domain is that of the google.rpc.ErrorInfo in every status that a server of this
// package has made, with the namespace and the key of the call in its metadata. So
// a refusal is told from an application's error of the same code, and from one that
// a server has got from another and passes on.
const Domain = "leasehold"

// keyHeader has the key of a call, as 16 hexadecimal digits.
const keyHeader = "leasehold-key"

// The keys of the metadata of an ErrorInfo.
const (
	infoNamespace = "namespace"
	infoKey       = "key"
	infoMethod    = "method"
	infoField     = "field"
)

// reason is what an ErrorInfo says: the name of a kind, as such reasons are written.
func reason(k leasehold.Kind) string {
	return strings.ToUpper(strings.ReplaceAll(k.Error(), " ", "_"))
}

// An origin is where a server has found the key of a unary call. The field is empty if
// it was not in the request.
type origin struct{ method, field string }

// marked returns an error of ours as the status of a call. Its kind is in it, and
// in the ErrorInfo.
func marked(ns leasehold.Namespace, key leasehold.Key, from origin, err error) error {
	s, _ := status.FromError(wire.FromError(err))
	about := map[string]string{infoNamespace: string(ns), infoKey: key.String()}
	if from.field != "" {
		about[infoMethod], about[infoField] = from.method, from.field
	}
	detailed, failed := s.WithDetails(&errdetails.ErrorInfo{
		Domain: Domain, Reason: reason(leasehold.KindOf(err)), Metadata: about,
	})
	if failed != nil { // an OK status; wire.FromError makes none of an error
		return s.Err()
	}
	return detailed.Err()
}

// info returns the ErrorInfo with which a server of a namespace has marked the
// status, nil if it has not.
func info(ns leasehold.Namespace, err error) *errdetails.ErrorInfo {
	s, ok := status.FromError(err)
	if !ok {
		return nil
	}
	for _, detail := range s.Details() {
		if i, ok := detail.(*errdetails.ErrorInfo); ok && i.GetDomain() == Domain && i.GetMetadata()[infoNamespace] == string(ns) {
			return i
		}
	}
	return nil
}

// refused reports whether a server has refused a call because it does not own the
// key, or its lease is suspended, and has done nothing.
func refused(ns leasehold.Namespace, key leasehold.Key, err error) bool {
	i := info(ns, err)
	return i != nil && refusal(i) && i.GetMetadata()[infoKey] == key.String()
}

// refusal reports whether it is the mark of a refusal, of whatever key.
func refusal(i *errdetails.ErrorInfo) bool {
	return i.GetReason() == reason(leasehold.ErrNotOwner) || i.GetReason() == reason(leasehold.ErrSuspended)
}

// misread returns an error if the server of a call takes its key from another field of
// the request than the caller, nil otherwise. Then no other server would do better.
//
// That the keys differ is not enough: the server's handler may have made a call itself,
// about something else, and pass on how that was refused. But servers of one namespace
// have the same field for a method, so that one that differs is a mistake in any case.
func misread(ns leasehold.Namespace, call *call, err error) error {
	i := info(ns, err)
	if i == nil || !refusal(i) || call.keyed || call.method.path == nil {
		return nil // a key that an option has said is compared by the server
	}
	about := i.GetMetadata()
	theirs, ours := about[infoField], call.method.path.text
	if theirs == "" || theirs == ours || about[infoMethod] != call.name || about[infoKey] == call.key.String() {
		return nil
	}
	return failed(leasehold.Errorf(opCall, leasehold.ErrInvalid, call.name,
		"caller and server take the key of the call from different places, and it was not carried out: it was routed by field %q, key %v, and the server looks for field %q, key %s; give both the same KeyField",
		ours, call.key, theirs, about[infoKey]))
}

// translate returns what a call has failed with for the application: an error of
// ours if it is one, and otherwise what gRPC or the server's application said. That
// may be the refusal of a call about another key, which the server has made itself and
// passes on: it does not say that nothing was done here.
func translate(ns leasehold.Namespace, key leasehold.Key, err error) error {
	var unsent *keybalancer.NotSent
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsent):
		return failed(unsent.Err)
	}
	if i := info(ns, err); i != nil && (!refusal(i) || refused(ns, key, err)) {
		return wire.ToError(err)
	}
	return err
}

// A failure is an error of ours that no server has said. It is a status, too.
type failure struct {
	error
	code codes.Code
}

func (f *failure) Unwrap() error { return f.error }

// GRPCStatus is what status.FromError looks for.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.Error()) }

// failed makes a status of an error. A call that was given up because its server
// never was the owner is Unavailable for whoever knows gRPC alone.
func failed(err error) error {
	code := status.Code(wire.FromError(err))
	if code == codes.Aborted {
		code = codes.Unavailable
	}
	return &failure{err, code}
}

const opCall = "call"

func missingKey(method, why string) error {
	return failed(leasehold.Errorf(opCall, leasehold.ErrInvalid, method, "the call has no key: %s", why))
}
