//go:build failpoints

package failpoint

// A Point is a place in the code.
type Point struct {
	Name string
	kind kind
	When string // it is passed
}

// A kind has the possible actions of a point besides kill and pause.
type kind int

const (
	passes kind = iota // none
	fails              // error
	loses              // drop
)

// actions returns the possible actions of a point.
func (p *Point) actions() []action {
	switch p.kind {
	case fails:
		return []action{kill, pause, fail}
	case loses:
		return []action{kill, pause, drop}
	default:
		return []action{kill, pause}
	}
}

// Actions returns the names of the possible actions, as in LEASEHOLD_FAILPOINTS.
func (p *Point) Actions() (names []string) {
	for _, a := range p.actions() {
		names = append(names, string(a))
	}
	return names
}

// Points returns all points, grouped by package. Tests compare them with the source and with
// docs/RELIABILITY.md.
func Points() []Point { return points }

// Names returns the names of all points.
func Names() (names []string) {
	for _, p := range points {
		names = append(names, p.Name)
	}
	return names
}

func find(name string) *Point {
	for i := range points {
		if points[i].Name == name {
			return &points[i]
		}
	}
	return nil
}

var points = []Point{
	{"manager/record-read", passes, "the leader record is read, before the election processes it"},
	{"manager/before-swap", passes, "before the leader record is written: renewal, takeover, resignation"},
	{"manager/swapped", loses, "the leader record is written, before the election processes that; dropped, the outcome is unknown"},
	{"manager/leads", passes, "the election is won, before any action as leader"},
	{"manager/namespaces-read", passes, "a new leader has read the namespaces"},
	{"manager/table-read", passes, "a new leader has read a table, before its machine processes it"},
	{"manager/before-commit", passes, "changes are decided, before they are stored"},
	{"manager/committed-before-reply", loses, "changes are stored, before any reply; dropped, the outcome is unknown"},
	{"manager/log-end-read", passes, "the end of the log is read after an unknown outcome"},
	{"manager/before-snapshot", passes, "before a snapshot is saved"},
	{"manager/snapshot-saved", passes, "a snapshot is saved"},
	{"manager/namespaces-written", passes, "the namespaces are changed in the store, before any notification"},
	{"manager/owner-connected", passes, "the first message of an owner is received on a new stream"},
	{"manager/request-heard", loses, "an owner's message is received, before the machine processes it"},
	{"manager/reply-before-send", loses, "before a reply to an owner is sent: a grant, a renewal, a recall"},
	{"manager/question-heard", loses, "a lookup's request is received"},
	{"manager/update-before-send", loses, "before changes are sent to a lookup"},
	{"manager/follows-leader", passes, "a standby has opened a stream to the leader"},
	{"manager/leader-heard", loses, "a standby has received changes from the leader, for its own lookups"},
	{"manager/before-resigning", passes, "a closing manager, before it resigns as leader"},
	{"manager/steps-down", passes, "a leader has lost leadership, before it acts on that"},
	{"manager/resigned", passes, "the resignation is stored, and the manager still runs"},

	{"owner/joined", passes, "the leader has accepted the owner, before Join returns"},
	{"owner/reply-heard", loses, "a leader's reply is received, before the machine processes it"},
	{"owner/before-publishing", passes, "the machine's leases have changed, before checks use them"},
	{"owner/published", passes, "checks use the new leases, before the ack to the leader"},
	{"owner/revoked", passes, "leases are dropped, before leader and application are notified"},
	{"owner/before-send", loses, "before a message to the leader is sent: a renewal, an ack"},
	{"owner/hung-up", passes, "the stream to a manager has failed"},
	{"owner/before-export", passes, "before the source of a move begins"},
	{"owner/copied", passes, "the first copy is transferred, and the range is still served"},
	{"owner/stopped", passes, "the range is no longer served, before the rest is sent"},
	{"owner/imported", passes, "the target has all state, before its machine processes that"},
	{"owner/move-confirmed", passes, "the source has received the confirmation, before its machine processes it"},
	{"owner/before-install", passes, "the target has the lease, before its state is installed"},
	{"owner/installed", passes, "the state is installed, before the machine processes that"},
	{"owner/before-parting", passes, "Close, before it moves all leases to other owners"},
	{"owner/before-leaving", passes, "Close, before it releases the remaining leases"},
	{"owner/left", passes, "the leader has confirmed the departure, and the owner still runs"},

	{"link/before-connecting", passes, "before an owner or a lookup opens a stream to a manager"},
	{"link/connected", passes, "the stream is open, before the first message"},
	{"link/broken", passes, "the stream has ended, before that is reported"},

	{"lookup/before-asking", loses, "before a lookup requests changes"},
	{"lookup/update-heard", loses, "changes are received, before the machine processes them"},
	{"lookup/before-publishing", passes, "the machine has a new table, before Find uses it"},
	{"lookup/published-before-losses", passes, "Find uses the new table, before its losses are reported"},

	{"mover/before-connecting", passes, "before the source opens a stream to the target"},
	{"mover/before-letting-in", passes, "before the target accepts the source"},
	{"mover/before-chunk", fails, "before the source sends a chunk or the end; failed, the stream breaks"},
	{"mover/before-confirmation", passes, "the target has all state, before it sends the confirmation"},

	{"store/before-takeover", passes, "before a new term is written with its leader"},
	{"store/before-append", fails, "before a part of the log is written"},
	{"store/appended", fails, "a part of the log is written; failed, the outcome is unknown"},
	{"store/piece-appended", passes, "one of several pieces of a batch is written, not visible to readers"},
	{"store/base-piece-written", passes, "a piece of a table that replaces a log is written, not visible to readers"},
	{"store/snapshot-written", passes, "all pieces of a snapshot are written, not visible to readers"},

	{"etcd/marker-written", passes, "the new marker of the data directory is written as a temporary file"},
	{"etcd/marker-renamed", passes, "the marker is renamed, before the directory is synced"},
	{"etcd/ready-before-marker", passes, "a member has joined its group, before its marker is written"},
	{"etcd/before-commit", fails, "before a transaction is sent to etcd"},
	{"etcd/committed", fails, "etcd has committed the transaction; failed, the outcome is unknown"},

	{"flease/before-opening", passes, "a starting member, before it listens on its address"},
	{"flease/packet-heard", loses, "a packet is received"},
	{"flease/before-its-time", passes, "before a timer of the machine: renewal, expiry"},
	{"flease/before-asking", passes, "before leases are requested"},
	{"flease/answered", passes, "the holders are known, before the caller receives them"},
	{"flease/releasing", passes, "leases are released locally, before the members receive that"},

	{"memcatalog/before-appointed", passes, "a manager has the leadership lease, before it leads"},
	{"memcatalog/before-sharing", passes, "before a leader reads the catalog of another manager or sends it"},
	{"memcatalog/asked-before-answer", passes, "the other manager has processed the request, before its reply"},
	{"memcatalog/shared", passes, "the reply is received or has timed out"},
	{"memcatalog/catalog-confirmed", passes, "a quorum has a change of the namespaces, before the client receives the result"},
	{"memcatalog/tenure-over", passes, "the leadership lease has expired, before the manager acts on that"},

	{"agent/joined-before-answer", passes, "a program's owner has joined, before the reply to the program"},
	{"agent/promised-before-answer", passes, "leases are promised, before the reply to the program"},
	{"agent/before-line", passes, "before an event is written to a program"},
	{"agent/before-closing", passes, "before a program's owner is closed"},
	{"agent/left-before-answer", passes, "a program's owner is closed, before the reply to the program"},
}
