// Package bench compares finding a key's server in Leasehold with the same in
// libraries that people use for it today. It is a module of its own, so that
// they do not become dependencies of the product.
//
// Everyone has 1,000 servers, is asked for the same names of 20 bytes in the
// same order, hashes them with XXH64, and gives back the server's address:
//
//   - Leasehold's lookup library, with a table of 64,000 ranges that it has
//     received from a manager over gRPC;
//   - the index alone, over the same ranges: hash and search, with no table
//     behind it. What the library adds to that is its own cost;
//   - grafana/dskit's ring with 64 tokens for each server;
//   - buraksezer/consistent.
//
// They do different things for their callers, which each contestant's comment
// says. The figures compare what a request pays to learn where to go.
//
//	go test -bench .        the figures, by contestant
//	go run ./ratios         the same in short turns, with medians and ratios,
//	                        and whether they are what we want them to be
package bench
