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

// Domain is the domain of the google.rpc.ErrorInfo in every status of this package's servers.
// Its metadata has the namespace and the key of the call. It distinguishes a rejection from
// an application's error with the same code, and from the forwarded error of another server.
const Domain = "leasehold"

// Headers of a call.
const (
	// keyHeader has the key, as 16 hexadecimal digits.
	keyHeader = "leasehold-key"
	// kindHeader is kindName if keyHeader has a name instead, which the server hashes.
	kindHeader = "leasehold-key-kind"
	kindName   = "name"
)

// The keys of the metadata of an ErrorInfo.
const (
	infoNamespace = "namespace"
	infoKey       = "key"
	infoMethod    = "method"
	infoField     = "field"
)

// reason returns the reason of an ErrorInfo: the name of a kind in upper snake case.
func reason(k leasehold.Kind) string {
	return strings.ToUpper(strings.ReplaceAll(k.Error(), " ", "_"))
}

// An origin is the method and the field that had the key of a unary call. The field is empty
// if the key was in the header.
type origin struct{ method, field string }

// newStatus returns the status of an error with a kind, which is in the ErrorInfo.
func newStatus(ns leasehold.Namespace, key leasehold.Key, from origin, err error) error {
	s, _ := status.FromError(wire.FromError(err))
	about := map[string]string{infoNamespace: string(ns), infoKey: key.String()}
	if from.field != "" {
		about[infoMethod], about[infoField] = from.method, from.field
	}
	detailed, detailErr := s.WithDetails(&errdetails.ErrorInfo{
		Domain: Domain, Reason: reason(leasehold.KindOf(err)), Metadata: about,
	})
	if detailErr != nil { // only for an OK status, which wire.FromError never returns
		return s.Err()
	}
	return detailed.Err()
}

// info returns the ErrorInfo of a status from a server of a namespace; nil without one.
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

// isRejectionOf reports whether a server rejected a call with this key without executing it:
// it does not own the key, or its lease is suspended.
func isRejectionOf(ns leasehold.Namespace, key leasehold.Key, err error) bool {
	i := info(ns, err)
	return i != nil && isRejection(i) && i.GetMetadata()[infoKey] == key.String()
}

// isRejection reports whether the reason is that of a rejection.
func isRejection(i *errdetails.ErrorInfo) bool {
	return i.GetReason() == reason(leasehold.ErrNotOwner) || i.GetReason() == reason(leasehold.ErrSuspended)
}

// fieldMismatch returns an error if the server of a call takes the key from another field of
// the request than the caller. Every other server would reject the call, too.
//
// Different keys are not sufficient: the server's handler may have returned the rejection of
// a call that it made itself. But all servers of a namespace have the same field for a
// method, so that a different field is always a configuration error.
func fieldMismatch(ns leasehold.Namespace, call *call, err error) error {
	i := info(ns, err)
	if i == nil || !isRejection(i) || call.keyed || call.method.path == nil {
		return nil // the server compares a key from an option
	}
	about := i.GetMetadata()
	theirs, ours := about[infoField], call.method.path.text
	if theirs == "" || theirs == ours || about[infoMethod] != call.name || about[infoKey] == call.key.String() {
		return nil
	}
	return asFailure(leasehold.Errorf(opCall, leasehold.ErrInvalid, call.name,
		"caller and server use different key fields, and the call was not executed: it was routed by field %q, key %v, but the server reads field %q, key %s; configure the same KeyField for both",
		ours, call.key, theirs, about[infoKey]))
}

// translate returns a call's error for the application: with its kind if it has one,
// otherwise the error of gRPC or of the server's application. The rejection of a call with
// another key, which the server's handler made and returns, has no kind: it does not mean
// that this call was not executed.
func translate(ns leasehold.Namespace, key leasehold.Key, err error) error {
	var unsent *keybalancer.NotSent
	if errors.As(err, &unsent) {
		return asFailure(unsent.Err)
	}
	i := info(ns, err)
	switch {
	case i != nil && (!isRejection(i) || isRejectionOf(ns, key, err)):
		return wire.ToError(err)
	case i == nil && status.Code(err) == codes.Unavailable && leasehold.KindOf(err) == leasehold.Other:
		return &classified{mayBeExecuted, err} // gRPC lost the connection
	default:
		return err
	}
}

// A failure is an error of the client itself. It is also a status.
type failure struct {
	error
	code codes.Code
}

func (f *failure) Unwrap() error { return f.error }

// GRPCStatus is for status.FromError.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.Error()) }

// asFailure returns an error as a status. ErrNotOwner after all attempts is Unavailable, as
// generic gRPC clients expect.
func asFailure(err error) error {
	code := status.Code(wire.FromError(err))
	if code == codes.Aborted {
		code = codes.Unavailable
	}
	return &failure{err, code}
}

const opCall = "call"

func missingKey(method, why string) error {
	return asFailure(leasehold.Errorf(opCall, leasehold.ErrInvalid, method, "the call has no key: %s", why))
}
