// Command scale asks what a manager costs that has many owners and lookups, and
// how that grows: on the testbeds of the two papers, and with five and
// twenty-five times as many.
//
//	cd lab/bench && go run ./scale                          all of it, in some 23 minutes
//	cd lab/bench && go run ./scale -quick                   the smallest, in half a minute
//	cd lab/bench && go run ./scale -only outage             all managers down for a minute, in three
package main
