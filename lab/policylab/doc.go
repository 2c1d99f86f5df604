// Package policylab tries a partition policy against a workload, offline: as
// many owners and as much time as wanted, in seconds.
//
// # Design
//
// A [Workload] says what every key truly costs in each period: a [Load]. The
// lab keeps to what is known in production. Owners count what reaches the keys
// they hold, in cells, with the hottest keys apart; what they count is noisy,
// they smooth it, and of a range that has just come they say nothing for a
// period. Only that reaches the policy, with the budget of moves that a
// [partition.Bucket] allows. What is judged is the true load.
//
// A run goes from period to period, counted from 0:
//
//  1. Owners join and leave, as [Config].Changes say.
//  2. The policy decides, from the reports of the period before. In period 0
//     there are none, and nothing is assigned yet.
//  3. The load of the period falls on the owners: that is a [Sample].
//  4. Owners measure it.
//
// So a policy sees its first loads when it decides for period 2: what is
// assigned in period 0 is new there, and is first measured in period 1.
//
// Moving keys takes no time here, and costs nothing but budget. Equal
// configurations give equal results, on any computer.
package policylab
