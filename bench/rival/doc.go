// Command rival asks whether cadence-workflow/shard-manager, the open shard manager
// nearest to this one, can take part: the same owners that join and crash, and the
// same lookups that hear of it, on both.
//
//	cd bench && go run ./rival
//
// Its contest needs the rival as a server with etcd, built from the module that the
// Go proxy has. This command asks for that module, and says what became of it.
package main
