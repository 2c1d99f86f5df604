package fleasesim

// An event is something that happens at an instant of true time.
type event struct {
	at    int64
	what  happening
	to    int32  // the process
	epoch uint32 // for what a process has set for itself: it must still be the same
	mail  *packet
	do    func()
}

// A happening is a kind of event.
type happening uint8

const (
	arrival happening = iota // of a packet
	alarm                    // that a machine has asked for
	resume                   // after a pause
	action                   // of the application
	effect                   // whatever its function does
)
