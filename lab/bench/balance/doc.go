// Command balance asks how evenly keys lie on their owners, and how many of them
// move for it: our policies against consistent hashing, plain and with bounded
// loads, and against the rule of the papers.
//
//	cd lab/bench && go run ./balance                 all of it, in about a minute
//	cd lab/bench && go run ./balance -only figure10  one part: zipf, figure10, hot or members
//
// Nothing here is timed: package policylab plays the periods of a pool of owners,
// in which owners count what reaches them, and the policy sees what they counted.
// The same seeds give the same numbers on any computer, however busy. A round is a
// seed: it changes where the keys are, what owners count, and who leaves.
//
// # Bounded loads
//
// Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam) lets
// nobody have more than a factor above the mean, here 1.25: what would go to a full
// owner goes to the next one on the circle. It takes part twice.
//
//   - As buraksezer/consistent has it, the library itself. It divides keys among a
//     fixed number of partitions and bounds how many of these an owner has. It knows
//     nothing of loads, and so nothing happens when some keys get hot.
//   - By loads: the same circle, but what is bounded is the measured load of an
//     owner, as [byLoad] describes. No library that we know of does that for keys that have
//     one owner at a time. Balancers do it for single requests, which go to any
//     server.
//
// Both have 64 partitions for each owner of the first, as many as consistent
// hashing has points. A partition is a range of keys here, not all keys with the same
// hash modulo the number of partitions. Keys are hashes already: to which of equal parts
// one belongs is as good as chance, in either way.
//
// Neither knows a budget of moves, as consistent hashing does not. Ours and that
// of the papers keep to 9 % of all keys in a minute.
package main
