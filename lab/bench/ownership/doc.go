// Command ownership asks what a server pays to know that it still owns what it
// is about to serve: owner.Check and owner.Held beside a reading of the clock, and
// beside what one can ask etcd.
//
//	cd lab/bench && go run ./ownership          all of it, in a minute
//	cd lab/bench && go run ./ownership -quick   in seconds
package main
