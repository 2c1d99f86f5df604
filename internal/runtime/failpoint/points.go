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

// Points returns all points there are, those of a package together. A test holds them
// against the source, and docs/FAILPOINTS.md against them.
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
	{"manager/record-read", passes, "the leader record was read; the election has not processed it"},
	{"manager/before-swap", passes, "before a write of the leader record: renewal, takeover, resignation"},
	{"manager/swapped", loses, "the record was written; the election has not processed it. Dropped: unknown outcome"},
	{"manager/leads", passes, "the election is won; nothing was done as leader"},
	{"manager/namespaces-read", passes, "a new leader has read the namespaces"},
	{"manager/table-read", passes, "a new leader has read a table; its machine has not processed it"},
	{"manager/before-commit", passes, "changes are decided, not stored"},
	{"manager/committed-before-reply", loses, "changes are stored, not sent. Dropped: unknown outcome"},
	{"manager/log-end-read", passes, "after an unknown outcome, the end of the log was read"},
	{"manager/before-snapshot", passes, "before a snapshot is saved"},
	{"manager/snapshot-saved", passes, "a snapshot was saved"},
	{"manager/namespaces-written", passes, "the namespaces were changed in the store; no reply was sent"},
	{"manager/owner-connected", passes, "the first message of an owner was received on a new stream"},
	{"manager/request-received", loses, "an owner's message was received; the machine has not processed it"},
	{"manager/reply-before-send", loses, "before a reply to an owner: grant, renewal, recall"},
	{"manager/question-received", loses, "a lookup's request was received"},
	{"manager/update-before-send", loses, "before changes are sent to a lookup"},
	{"manager/follows-leader", passes, "a standby has opened a stream to the leader"},
	{"manager/leader-received", loses, "a standby has received the leader's update for its lookups"},
	{"manager/before-resigning", passes, "a closing manager is about to resign"},
	{"manager/steps-down", passes, "a leader has lost leadership, before it acts on that"},
	{"manager/resigned", passes, "the resignation is stored; the process still runs"},

	{"owner/joined", passes, "the leader has accepted the owner; Join has not returned"},
	{"owner/reply-received", loses, "a reply was received; the machine has not processed it"},
	{"owner/before-publishing", passes, "the machine has other leases than the published view"},
	{"owner/published", passes, "the view is published; no ack was sent"},
	{"owner/revoked", passes, "leases were dropped; no ack was sent and no callback called"},
	{"owner/before-send", loses, "before a message to the leader: renewal, ack"},
	{"owner/hung-up", passes, "the stream to a manager broke"},
	{"owner/before-export", passes, "the source of a move is about to start"},
	{"owner/copied", passes, "the first copy has arrived; the range is still served"},
	{"owner/stopped", passes, "the range is no longer served; the rest was not sent"},
	{"owner/imported", passes, "the target has the complete state; its machine has not processed that"},
	{"owner/move-confirmed", passes, "the source has received the confirmation; its machine has not processed it"},
	{"owner/before-install", passes, "the target has the lease; the state is not installed"},
	{"owner/installed", passes, "the state is installed; the machine has not processed that"},
	{"owner/before-parting", passes, "Close is about to move everything away"},
	{"owner/before-leaving", passes, "Close is about to release the rest"},
	{"owner/left", passes, "the leader has confirmed the departure; the process still runs"},

	{"link/before-connecting", passes, "an owner or a lookup is about to open a stream to a manager"},
	{"link/connected", passes, "the stream is open; nothing was sent"},
	{"link/broken", passes, "the stream has ended; no component was notified"},

	{"lookup/before-asking", loses, "a lookup is about to request changes"},
	{"lookup/update-received", loses, "changes were received; the machine has not processed them"},
	{"lookup/before-publishing", passes, "the machine has a newer table than Find"},
	{"lookup/published-before-losses", passes, "Find has the table; its losses were not reported"},

	{"mover/before-connecting", passes, "the source is about to open a stream to the target, the first or another"},
	{"mover/before-letting-in", passes, "the target is about to accept the source"},
	{"mover/before-chunk", fails, "before a chunk or the end is sent. Failed: the stream breaks"},
	{"mover/before-confirmation", passes, "the target has the state; no confirmation was sent"},

	{"store/before-takeover", passes, "before a new term is written with its leader"},
	{"store/before-append", fails, "before a part of the log is written"},
	{"store/appended", fails, "a part of the log was written. Failed: unknown outcome"},
	{"store/piece-appended", passes, "one of several pieces of a batch was written, not yet visible"},
	{"store/base-piece-written", passes, "a piece of a table that replaces a log was written, not yet visible"},
	{"store/snapshot-written", passes, "all pieces of a snapshot were written, not yet visible"},

	{"etcd/marker-written", passes, "the new marker of the data directory was written beside the old one"},
	{"etcd/marker-renamed", passes, "the marker was renamed; the directory was not synced"},
	{"etcd/ready-before-marker", passes, "a member joins its group for the first time; its directory has no marker"},
	{"etcd/before-commit", fails, "before a transaction is sent to etcd"},
	{"etcd/committed", fails, "etcd has committed. Failed: unknown outcome"},

	{"flease/before-opening", passes, "a starting member is about to bind its address"},
	{"flease/packet-received", loses, "a packet was received"},
	{"flease/before-its-time", passes, "before the machine advances: renewal, release"},
	{"flease/before-asking", passes, "before leases are requested"},
	{"flease/answered", passes, "the holders are known; the caller has no answer"},
	{"flease/releasing", passes, "leases were released locally; the members may not have received that"},

	{"memcatalog/before-appointed", passes, "a manager has the leadership lease and does not lead yet"},
	{"memcatalog/before-sharing", passes, "a leader is about to read or write another manager's catalog"},
	{"memcatalog/asked-before-answer", passes, "the other manager has processed it; no answer was sent"},
	{"memcatalog/shared", passes, "the answer has arrived, or the call has failed"},
	{"memcatalog/catalog-confirmed", passes, "a majority has a change of the namespaces; the caller has no answer"},
	{"memcatalog/tenure-over", passes, "the leadership lease has ended, before the manager acts on that"},

	{"agent/joined-before-answer", passes, "a program's owner has joined; no answer was sent"},
	{"agent/promised-before-answer", passes, "leases were promised; no answer was sent"},
	{"agent/before-line", passes, "before an event is written to a program"},
	{"agent/before-closing", passes, "before a program's owner is closed"},
	{"agent/left-before-answer", passes, "a program's owner was closed; no answer was sent"},
}
