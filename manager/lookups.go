package manager

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/runtime/broadcast"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// lookupService serves lookups, and standbys that follow this manager.
type lookupService struct {
	leaseholdv1.UnimplementedLookupServiceServer
	m *Manager
}

// Follow serves one stream of a lookup.
func (s *lookupService) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	out, err := s.m.lookups.Open(stream)
	if err != nil {
		s.m.metrics.countRefusal(leasehold.KindOf(err))
		return wire.FromError(err)
	}
	h := lookupHandler{m: s.m, ctx: stream.Context(), stream: out}
	return out.Serve(h.handle)
}

// lookupHandler handles the requests of one stream.
type lookupHandler struct {
	m         *Manager
	ctx       context.Context //nolint:containedctx // it is the stream's
	stream    *broadcast.Lookup
	namespace leasehold.Namespace // of all requests
}

func (h *lookupHandler) handle(r *leaseholdv1.FollowRequest) error {
	first := h.namespace == ""
	if first {
		if err := h.m.checkVersion(h.ctx, r.GetVersion()); err != nil {
			return err
		}
	}
	request, err := wire.ToLookupRequest(r, h.stream.ID())
	if err != nil {
		return err
	}
	if first {
		h.namespace = request.Namespace
		h.stream.Subscribe(h.m.clock.Now(), h.namespace)
	}
	if request.Namespace != h.namespace {
		return leasehold.Errorf("follow", leasehold.ErrInvalid, string(request.Namespace), "a stream is for one namespace, this one is for %q", h.namespace)
	}
	if failpoint.Drop("manager/question-received") || !h.stream.Ask(h.m.clock.Now(), request) {
		return nil
	}
	ran, err := h.stream.Respond(func() bool { return h.m.driver.TryLowPriority(h.request) })
	if !ran {
		h.m.driver.PostLowPriority(h.m.ctx, h.request)
	}
	return err
}

// request returns the newest request as an event.
func (h *lookupHandler) request() managerproc.Event {
	return managerproc.Lookup{LookupRequest: h.stream.Question()}
}
