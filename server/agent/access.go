package agent

import (
	"context"
	"net/http"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/httpauth"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// Methods of the managers whose permissions apply to requests here.
const (
	holdMethod   = leaseholdv1.OwnerService_Hold_FullMethodName
	followMethod = leaseholdv1.LookupService_Follow_FullMethodName
	statusMethod = leaseholdv1.AdminService_GetStatus_FullMethodName
	listMethod   = leaseholdv1.AdminService_ListOwners_FullMethodName
)

// identified authenticates callers if there is a policy, except for health checks.
func (a *Agent) identified(next http.Handler) http.Handler {
	if a.desk == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		caller, err := a.desk.Who(r)
		if err == nil && len(caller.Identities()) == 0 {
			err = leasehold.Errorf("agent", leasehold.ErrDenied, "", "show a client certificate, or a token as \"Authorization: Bearer TOKEN\"")
			a.refused.Tell("refused", "from", r.RemoteAddr, "why", err)
		}
		if err != nil {
			v := verdictOf(leasehold.KindOf(err))
			jsonapi.Write(w, httpauth.Status(err), newError(v.name, err.Error()))
			return
		}
		next.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), caller)))
	})
}

// may authorizes the caller of ctx for a method, and logs a denial. It is cheap enough for every
// request.
func (a *Agent) may(ctx context.Context, method string, ns leasehold.Namespace, name leasehold.OwnerID) error {
	err := a.allows(ctx, method, ns, name)
	if err != nil {
		caller, _ := access.CallerFrom(ctx)
		a.refused.Tell("refused", "caller", caller.String(), "namespace", jsonapi.Clip(string(ns)), "owner", jsonapi.Clip(string(name)), "why", err)
	}
	return err
}

func (a *Agent) allows(ctx context.Context, method string, ns leasehold.Namespace, name leasehold.OwnerID) error {
	if a.cfg.Access == nil {
		return nil
	}
	caller, _ := access.CallerFrom(ctx)
	return a.cfg.Access.Allow(caller, method, ns, name)
}

func (a *Agent) metrics(w http.ResponseWriter, r *http.Request) {
	if err := a.may(r.Context(), statusMethod, "", ""); err != nil {
		fail(w, err)
		return
	}
	a.cfg.Scrape.ServeHTTP(w, r)
}

// visible removes namespaces from a status that the caller may not list.
func (a *Agent) visible(ctx context.Context, d *statusDocument) {
	hidden := func(ns string) bool { return a.allows(ctx, listMethod, leasehold.Namespace(ns), "") != nil }
	d.Owners = slices.DeleteFunc(d.Owners, func(o ownerDocument) bool { return hidden(o.Namespace) })
	d.Lookups = slices.DeleteFunc(d.Lookups, func(l lookupDocument) bool { return hidden(l.Namespace) })
}

// while calls do with a context that ends when the policy no longer permits the caller of ctx a method,
// or a certificate was revoked. It returns the reason of that.
func (a *Agent) while(ctx context.Context, method string, request any, do func(context.Context)) error {
	if a.cfg.Access == nil {
		do(ctx)
		return nil
	}
	return wire.ToError(a.cfg.Access.Serve(ctx, method, request, func(ctx context.Context) error {
		do(ctx)
		return nil
	}))
}

// guardPermission ends the session when its program may no longer be that owner. It returns when the
// session ends.
func (s *session) guardPermission(caller access.Caller) {
	request := &leaseholdv1.HoldRequest{Namespace: string(s.namespace), Holder: &leaseholdv1.Holder{Owner: string(s.owner.Name())}}
	err := s.agent.while(access.WithCaller(context.Background(), caller), holdMethod, request, func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-s.over:
		}
	})
	if err != nil {
		s.end("the program may no longer: " + err.Error())
	}
}
