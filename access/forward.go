package access

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/leasehold-dev/leasehold/secure"
)

const (
	// ForwardedHeader marks a call that a manager passes on to the leader.
	ForwardedHeader = "leasehold-forwarded"
	// callerHeader has the identities of who made it, one in each value.
	callerHeader = "leasehold-caller"
)

// Forward returns a context for passing the call of ctx on to another manager, which
// decides about the original caller. It is for handlers of calls that the policy has
// let in; others it leaves as they are.
func Forward(ctx context.Context) context.Context {
	s := sessionFrom(ctx)
	if s == nil {
		return ctx
	}
	s.passedOn.Store(true)
	for _, id := range s.caller.ids {
		ctx = metadata.AppendToOutgoingContext(ctx, callerHeader, string(id))
	}
	return ctx
}

// passedOn reads on whose behalf a call was passed on. That who passes it on is a
// manager is decided with the rest, and again whenever the policy changes.
func passedOn(c *Caller, fullMethod string, header metadata.MD) error {
	ids := header[callerHeader]
	if len(ids) == 0 {
		if len(header[ForwardedHeader]) > 0 && len(c.ids) > 0 {
			return denied(c, fullMethod, "passes on a call and does not say whose: give all managers an access file")
		}
		return nil
	}
	if len(c.ids) == 0 {
		return strange("whoever passes on a call of others must show a manager's certificate")
	}
	original := Caller{via: c.ids, chains: c.chains, addr: c.addr}
	for _, id := range ids {
		if !identity(secure.Identity(id)) {
			return denied(c, fullMethod, "passes on a call of somebody who has no identity")
		}
		original.ids = append(original.ids, secure.Identity(id))
	}
	*c = original
	return c.add(nil)
}

// identity reports whether a text can be who somebody is.
func identity(id secure.Identity) bool {
	if name, isToken := tokenName(id); isToken {
		return plainName(name)
	}
	return id.Validate() == nil && !isPattern(id)
}
