// Package failpoint marks places in the shells at which a test can kill or pause the process, fail an operation or
// drop a message.
//
//	if failpoint.Drop("manager/committed-before-reply") {
//		outcome = storage.Unknown
//	}
//
// # Design
//
// The machines need no failpoints: the simulator can stop between any two of their steps. A shell takes time
// between two steps, and a real crash hits a critical moment once in a million times. A failpoint is
// such a moment with a name.
//
// Shipped binaries contain no failpoints. Without the build tag "failpoints" the functions of this package are
// empty and inlined; a test checks that the command does not contain their names. With the tag an environment
// variable arms points:
//
//	LEASEHOLD_FAILPOINTS="manager/committed-before-reply=kill:after=3;owner/before-send=drop:times=5"
//
//	kill    ends the process at once, like kill -9
//	pause   blocks the goroutine, :for=2s
//	error   fails the operation, where possible
//	drop    drops the message or reply, where possible
//
// :after=N skips the first N passes. :times=N limits the number of times that the action runs; default 1,
// 0 means no limit. Each time writes a line to standard error. Unknown names and actions are
// rejected with a list of the valid ones.
//
// No failpoint is within a critical section, because a pause would block other goroutines. Points within a step of a
// machine are the exception.
package failpoint
