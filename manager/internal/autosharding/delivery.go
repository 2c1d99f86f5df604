package autosharding

import (
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// Limits of requests.
const (
	maxUUID       = 128 // bytes
	maxAckError   = 512 // characters
	maxKey        = 512 // bytes
	maxMetrics    = 16
	maxMetricName = 128 // bytes
	maxRangeLoads = 4096
)

// Timeouts of a stream. Each one releases what a client without progress holds; its next stream
// continues at the generation that it has accepted.
const (
	greetingTimeout = 10 * time.Second // from the start to the first request
	tableTimeout    = 5 * time.Second  // from then until this manager has a table
	sendTimeout     = 60 * time.Second // from the first to the last message of an assignment
	ackTimeout      = 30 * time.Second // from then to the acknowledgement
)

// phase is what a client is waiting for, or the server.
type phase uint8

const (
	greeting phase = iota // the first request
	ready                 // a newer assignment
	sending               // the rest of an assignment
	unacked               // the acknowledgement
)

// A delivery decides which assignment a client receives next, and validates its requests. It is
// not safe for concurrent use.
type delivery struct {
	phase      phase
	generation int64 // of the last assignment that was sent, or that the client has reported
	acked      bool  // while sending: the client has acknowledged the metadata already
}

func invalid(format string, args ...any) error {
	return leasehold.Errorf("watch assignment", leasehold.ErrInvalid, "", format, args...)
}

// greet handles the first request.
func (d *delivery) greet(r *pb.WatchShardingAssignmentRequest) (*pb.InitialClientConfig, error) {
	first := r.GetInitialClientConfig()
	switch {
	case first == nil:
		return nil, invalid("the first request of a stream must be initial_client_config")
	case first.GetLatestGeneration() < 0:
		return nil, invalid("latest_generation %d is negative", first.GetLatestGeneration())
	case len(first.GetClientUuid()) > maxUUID:
		return nil, invalid("client_uuid has %d bytes, the maximum is %d", len(first.GetClientUuid()), maxUUID)
	}
	d.phase, d.generation = ready, first.GetLatestGeneration()
	return first, nil
}

// begin reports whether to send an assignment of this generation now.
func (d *delivery) begin(generation int64) bool {
	if d.phase != ready || generation <= d.generation {
		return false
	}
	d.phase, d.generation, d.acked = sending, generation, false
	return true
}

// sent handles the end of sending.
func (d *delivery) sent() {
	d.phase = unacked
	if d.acked {
		d.phase = ready
	}
}

// ack handles an acknowledgement.
func (d *delivery) ack(a *pb.AssignmentAck) error {
	expected := (d.phase == unacked || d.phase == sending && !d.acked) && a.GetGeneration() == d.generation
	switch {
	case !expected:
		return invalid("acknowledgement of generation %d, which is not awaited", a.GetGeneration())
	case utf8.RuneCountInString(a.GetErrorMessage()) > maxAckError:
		return invalid("error_message of an acknowledgement has %d characters, the maximum is %d", utf8.RuneCountInString(a.GetErrorMessage()), maxAckError)
	case d.phase == sending:
		d.acked = true
	default:
		d.phase = ready
	}
	return nil
}

// checkLoads validates a load report.
func checkLoads(r *pb.LoadReport) error {
	if len(r.GetMetricLoads()) > maxMetrics {
		return invalid("load report with %d metrics, the maximum is %d", len(r.GetMetricLoads()), maxMetrics)
	}
	if r.GetStartTime().CheckValid() != nil || r.GetEndTime().CheckValid() != nil || r.GetEndTime().AsTime().Before(r.GetStartTime().AsTime()) {
		return invalid("load report without a valid period")
	}
	ranges := 0
	for name, l := range r.GetMetricLoads() {
		if ranges += len(l.GetRangeLoads()); ranges > maxRangeLoads || len(name) > maxMetricName {
			return invalid("load report with more than %d ranges, or a metric's name of more than %d bytes", maxRangeLoads, maxMetricName)
		}
		for _, at := range l.GetRangeLoads() {
			if load := at.GetLoad(); len(at.GetStartKey()) > maxKey || !(load >= 0 && load <= maxLoad) {
				return invalid("load report with a key of %d bytes and the load %v: want at most %d bytes and a finite load", len(at.GetStartKey()), load, maxKey)
			}
		}
	}
	return nil
}

// maxLoad keeps sums finite.
const maxLoad = 1e15
