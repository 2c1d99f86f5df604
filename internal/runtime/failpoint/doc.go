// Package failpoint marks the places in the shells at which a process may die, stand
// still, or lose what it has in its hands, so that tests can make it happen just there.
//
//	if failpoint.Drop("manager/committed-before-reply") {
//		outcome = storage.Unknown
//	}
//
// # DESIGN
//
// The machines need none of this: the simulator stops between any two steps of theirs.
// What a shell does between two steps takes time, and a real crash meets the moments that
// matter once in a million times. A failpoint is such a moment, with a name.
//
// What we ship has no switch that breaks it. Without the build tag "failpoints" the
// functions here are empty and are inlined to nothing: a test looks into the command for
// their names, and finds none. With the tag a point does what it was armed to do:
//
//	LEASEHOLD_FAILPOINTS="manager/committed-before-reply=kill:after=3;owner/before-send=drop:times=5"
//
//	kill    the process ends at once, as by kill -9
//	pause   the goroutine stands still, :for=2s
//	error   the operation fails, where it can
//	drop    the message or the answer is lost, where it can be
//
// :after=N lets it pass N times first, and :times=N does it so often; once unless told,
// and 0 is always. Each time is a line on the standard error. A name or an action that
// does not exist is refused, with a list of those that do.
//
// No point is passed while a lock is held, for a pause would stop more than it says; but for
// those within a step of a machine, where nobody else can run it.
package failpoint
