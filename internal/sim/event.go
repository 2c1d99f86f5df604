package sim

// An event is something that happens at an instant of true time. What it does
// depends on what; where it happens is an endpoint of the network, or nowhere.
type event struct {
	at    int64  // true time, in nanoseconds
	from  int32  // the endpoint that sent it, or none
	to    int32  // the endpoint, or none
	epoch uint32 // for timers: the process that set it must still be the same
	what  any
}

const none int32 = -1
