package agent

import (
	"context"
	"net/http"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/callers"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// identified finds out who asks, if there is a policy. Health is for anybody.
func (a *Agent) identified(next http.Handler) http.Handler {
	if a.desk == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		who, err := a.desk.Who(r)
		if err == nil && len(who.Identities()) == 0 {
			err = leasehold.Errorf("agent", leasehold.ErrDenied, "", "show a client certificate, or a token as \"Authorization: Bearer TOKEN\"")
			a.refused.Tell("refused", "from", r.RemoteAddr, "why", err)
		}
		if err != nil {
			v := verdictOf(leasehold.KindOf(err))
			answer(w, callers.Status(err), newError(v.name, err.Error()))
			return
		}
		next.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), who)))
	})
}

// may reports why whoever asks may not, if there is a policy. It costs as little as a
// question does that is asked all the time.
func (a *Agent) may(ctx context.Context, fullMethod string, ns leasehold.Namespace, name leasehold.OwnerID) error {
	if a.cfg.Access == nil {
		return nil
	}
	who, _ := access.CallerFrom(ctx)
	err := a.cfg.Access.Allow(who, fullMethod, ns, name)
	if err != nil {
		a.refused.Tell("refused", "caller", who.String(), "namespace", clip(string(ns)), "owner", clip(string(name)), "why", err)
	}
	return err
}

// mayHold reports why whoever asks may not be an owner of that name.
func (a *Agent) mayHold(ctx context.Context, ns leasehold.Namespace, name leasehold.OwnerID) error {
	return a.may(ctx, leaseholdv1.OwnerService_Hold_FullMethodName, ns, name)
}

// mayFollow reports why whoever asks may not look up keys of a namespace.
func (a *Agent) mayFollow(ctx context.Context, ns leasehold.Namespace) error {
	return a.may(ctx, leaseholdv1.LookupService_Follow_FullMethodName, ns, "")
}

// sees reports whether whoever asks may read about a namespace. That it may not is
// nothing to write down: it was not asked for.
func (a *Agent) sees(ctx context.Context, ns string) bool {
	if a.cfg.Access == nil {
		return true
	}
	who, _ := access.CallerFrom(ctx)
	return a.cfg.Access.Allow(who, leaseholdv1.AdminService_ListOwners_FullMethodName, leasehold.Namespace(ns), "") == nil
}

// measured answers with metrics whoever may see the status.
func (a *Agent) measured(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.may(r.Context(), leaseholdv1.AdminService_GetStatus_FullMethodName, "", ""); err != nil {
			fail(w, err)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// visible leaves in a status what whoever asks may read about.
func (a *Agent) visible(ctx context.Context, d *statusDocument) {
	d.Owners = slices.DeleteFunc(d.Owners, func(o ownerDocument) bool { return !a.sees(ctx, o.Namespace) })
	d.Lookups = slices.DeleteFunc(d.Lookups, func(l lookupDocument) bool { return !a.sees(ctx, l.Namespace) })
}

// following does something for as long as whoever asks may follow a namespace.
func (a *Agent) following(ctx context.Context, ns leasehold.Namespace, do func(context.Context)) {
	if a.cfg.Access == nil {
		do(ctx)
		return
	}
	// That the stream has ended is all that can still be told.
	_ = a.cfg.Access.Serve(ctx, leaseholdv1.LookupService_Follow_FullMethodName, &leaseholdv1.FollowRequest{Namespace: string(ns)},
		func(ctx context.Context) error {
			do(ctx)
			return nil
		})
}

// watch ends the session when the policy no longer permits its program to be that
// owner, or a certificate was revoked. It returns when the session ends.
func (s *session) watch(who access.Caller) {
	request := &leaseholdv1.HoldRequest{Namespace: string(s.namespace), Holder: &leaseholdv1.Holder{Owner: string(s.owner.Name())}}
	err := s.agent.cfg.Access.Serve(access.WithCaller(context.Background(), who), leaseholdv1.OwnerService_Hold_FullMethodName, request,
		func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-s.over:
			}
			return nil
		})
	if err != nil {
		s.end("the program may no longer: " + wire.ToError(err).Error())
	}
}
