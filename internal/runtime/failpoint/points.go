//go:build failpoints

package failpoint

// A Point is a place in the code.
type Point struct {
	Name string
	kind kind
	When string // it is passed, in a few words
}

// A kind says what may happen at a point besides the end of the process and a pause.
type kind int

const (
	passes kind = iota // nothing else
	fails              // what is done there fails
	loses              // what is there is lost
)

// actions returns what can be done at a point.
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

// Actions returns what can be done at a point, as LEASEHOLD_FAILPOINTS has it.
func (p *Point) Actions() (names []string) {
	for _, a := range p.actions() {
		names = append(names, string(a))
	}
	return names
}

// Points returns all points there are, those of a package together. A test holds them
// against the source, and docs/RELIABILITY.md against them.
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
	{"manager/record-read", passes, "the leader record was read, and the election does not know it yet"},
	{"manager/before-swap", passes, "the leader record is about to be written: to renew it, to take over, to resign"},
	{"manager/swapped", loses, "it was written, and the election does not know it yet; lost, the outcome is unknown"},
	{"manager/leads", passes, "the election is won, and nothing was done as leader"},
	{"manager/namespaces-read", passes, "a new leader has read which namespaces there are"},
	{"manager/table-read", passes, "a new leader has read a table, and its machine does not have it yet"},
	{"manager/before-commit", passes, "changes were decided, and are not stored"},
	{"manager/committed-before-reply", loses, "changes are stored, and nobody has heard of them; lost, the outcome is unknown"},
	{"manager/log-end-read", passes, "after an unknown outcome, the end of the log was read"},
	{"manager/before-snapshot", passes, "a snapshot is about to be saved"},
	{"manager/snapshot-saved", passes, "it was"},
	{"manager/namespaces-written", passes, "the namespaces were changed in the store, and nobody was told"},
	{"manager/owner-connected", passes, "the first message of an owner has come on a new stream"},
	{"manager/request-heard", loses, "an owner's message has come, and the machine does not have it yet"},
	{"manager/reply-before-send", loses, "an answer to an owner is about to be sent: a grant, a renewal, a recall"},
	{"manager/question-heard", loses, "a lookup's question has come"},
	{"manager/update-before-send", loses, "changes are about to be sent to a lookup"},
	{"manager/follows-leader", passes, "a standby has opened a stream to the leader"},
	{"manager/leader-heard", loses, "a standby has heard the leader, for its own lookups"},
	{"manager/before-resigning", passes, "a manager that is being closed is about to hand leadership over"},
	{"manager/steps-down", passes, "a leader has ceased to lead, and acts on it now"},
	{"manager/resigned", passes, "the store knows that it does not lead, and it still runs"},

	{"owner/joined", passes, "the leader has accepted the owner, and Join has not returned"},
	{"owner/reply-heard", loses, "a leader's answer has come, and the machine does not have it yet"},
	{"owner/before-publishing", passes, "the machine has other leases than those that checks see"},
	{"owner/published", passes, "checks see them, and the leader was not answered"},
	{"owner/revoked", passes, "leases were dropped, and neither the leader nor the application knows"},
	{"owner/before-send", loses, "a message to the leader is about to be sent: a renewal, an acknowledgement"},
	{"owner/hung-up", passes, "the conversation with a manager broke"},
	{"owner/before-export", passes, "the source of a move is about to begin"},
	{"owner/copied", passes, "the first copy has arrived, and the range is still served"},
	{"owner/stopped", passes, "the range is no longer served, and the rest was not sent"},
	{"owner/imported", passes, "the target has everything, and its machine does not know"},
	{"owner/move-confirmed", passes, "the source has heard so, and its machine does not know"},
	{"owner/before-install", passes, "the lease has come to the target, and its state is not in place"},
	{"owner/installed", passes, "the state is in place, and the machine does not know"},
	{"owner/before-parting", passes, "Close is about to have everything moved away"},
	{"owner/before-leaving", passes, "Close is about to give back what is left"},
	{"owner/left", passes, "the leader has said goodbye, and everything still runs"},

	{"link/before-connecting", passes, "an owner or a lookup is about to open a stream to a manager"},
	{"link/connected", passes, "the stream is open, and nothing was sent on it"},
	{"link/broken", passes, "it has ended, and nobody was told"},

	{"lookup/before-asking", loses, "a lookup is about to ask for what is new"},
	{"lookup/update-heard", loses, "changes have come, and the machine does not have them yet"},
	{"lookup/before-publishing", passes, "the machine has a table that Find does not see"},
	{"lookup/published-before-losses", passes, "Find sees it, and its losses were not told"},

	{"mover/before-connecting", passes, "the source is about to open a stream to the target, the first or another"},
	{"mover/before-letting-in", passes, "the target is about to let the source in"},
	{"mover/before-chunk", fails, "the source is about to send a chunk, or the end; failed, the stream breaks"},
	{"mover/before-confirmation", passes, "the target counts as having the state, and the source was not told"},

	{"store/before-takeover", passes, "a new term is about to be written with its leader"},
	{"store/before-append", fails, "a part of the log is about to be written"},
	{"store/appended", fails, "it was; failed, the outcome is unknown"},
	{"store/piece-appended", passes, "one of several pieces of a batch was written, which nobody can see"},
	{"store/base-piece-written", passes, "a piece of a table was written that is to take the place of a log, which nobody can see"},
	{"store/snapshot-written", passes, "all pieces of a snapshot were written, which nobody can see"},

	{"etcd/marker-written", passes, "what the data directory will say was written beside what it says"},
	{"etcd/marker-renamed", passes, "it is in its place, and the directory was not synced"},
	{"etcd/ready-before-marker", passes, "a member takes part in its group for the first time, and its directory does not say so"},
	{"etcd/before-commit", fails, "a transaction is about to be sent to etcd"},
	{"etcd/committed", fails, "etcd has done it; failed, the outcome is unknown"},

	{"flease/before-opening", passes, "a member that is starting is about to take its address"},
	{"flease/packet-heard", loses, "a packet has come"},
	{"flease/before-its-time", passes, "the machine is about to hear that time has passed: to renew, to give up"},
	{"flease/before-asking", passes, "leases are about to be asked for"},
	{"flease/answered", passes, "it is known who has them, and the caller does not know"},
	{"flease/releasing", passes, "leases were released here, and the members may not know"},

	{"memcatalog/before-appointed", passes, "a manager has the lease of leadership, and does not lead yet"},
	{"memcatalog/before-sharing", passes, "a leader is about to ask another manager what it remembers, or to tell it"},
	{"memcatalog/asked-before-answer", passes, "the other one has taken it in, and has not answered"},
	{"memcatalog/shared", passes, "its answer has come, or has not"},
	{"memcatalog/catalog-confirmed", passes, "enough managers have a change of the namespaces, and whoever asked for it does not know"},
	{"memcatalog/tenure-over", passes, "the lease of leadership is over, and is about to be acted on"},

	{"agent/joined-before-answer", passes, "a program's owner has joined, and the program does not know"},
	{"agent/promised-before-answer", passes, "leases were promised, and the program does not know"},
	{"agent/before-line", passes, "an event is about to be written to a program"},
	{"agent/before-closing", passes, "a program's owner is about to be closed"},
	{"agent/left-before-answer", passes, "it was, and the program does not know"},
}
