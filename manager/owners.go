package manager

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/broadcast"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// ownerService serves owners.
type ownerService struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	m *Manager
}

// Hold serves one stream of an owner.
func (s *ownerService) Hold(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	out, err := s.m.owners.Open(stream)
	if err != nil {
		s.m.metrics.countRefusal(leasehold.KindOf(err))
		return wire.FromError(err)
	}
	h := ownerHandler{m: s.m, ctx: stream.Context(), stream: out}
	return out.Serve(h.handle)
}

// ownerHandler handles the requests of one stream.
type ownerHandler struct {
	m        *Manager
	ctx      context.Context //nolint:containedctx // it is the stream's
	stream   *broadcast.Owner
	speaker  protocol.Speaker // of all requests
	identity string           // authenticated; of all requests
}

func (h *ownerHandler) handle(r *leaseholdv1.HoldRequest) error {
	first := h.speaker.Session.IsZero()
	if first {
		if err := h.m.checkVersion(h.ctx, r.GetVersion()); err != nil {
			return err
		}
	}
	request, err := wire.ToLeaseRequest(r, protocol.DefaultLimits)
	if err != nil {
		return err
	}
	if first {
		if err := h.m.cfg.checkOwner(request.Holder); err != nil {
			return err
		}
		h.speaker = request.Speaker()
		h.identity = string(h.m.ownerIdentity(h.ctx, request.Namespace, request.Holder.Owner))
		failpoint.Here("manager/owner-connected")
		h.stream.Register(h.speaker)
	}
	if request.Speaker() != h.speaker {
		return leasehold.Errorf("hold leases", leasehold.ErrInvalid, string(request.Holder.Owner), "a stream is for one session of one owner")
	}
	request.Identity = h.identity
	if failpoint.Drop("manager/request-received") {
		return nil
	}
	event := managerproc.Request{LeaseRequest: request}
	ran, err := h.stream.Respond(func() bool { return h.m.driver.Try(event) })
	if !ran {
		h.m.driver.Post(h.m.ctx, event)
	}
	return err
}
