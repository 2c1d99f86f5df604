// Command availability asks how long keys are not served when something fails: a
// rack of servers, as in PRS's figure 9, a server, the leader, the leader of the
// store; and when a server is shut down as it should be.
//
//	cd lab/bench && go run ./availability          all of it, in four minutes
//	cd lab/bench && go run ./availability -quick   without the rack, in half a minute
package main
