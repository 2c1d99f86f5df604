// Package policylab tries a partition policy against a workload, offline: with any number of owners and any
// duration, in seconds.
//
// # Design
//
// A [Workload] has the true cost of every key in each period: a [Load]. The policy has the same input as in
// production. Owners count the requests for the keys that they hold, in cells, with separate counts of the
// hottest keys. Their counts are noisy and smoothed, and do not include a range in the first period after it
// has moved. The policy gets only these reports, with the budget of moves that a [partition.Bucket] allows.
// The result is computed from the true load.
//
// A run goes from period to period, counted from 0:
//
//  1. Owners join and leave, according to [Config].Changes.
//  2. The policy decides, from the reports of the previous period. In period 0
//     there are no reports and no assignment.
//  3. The load of the period is distributed to the owners: that is a [Sample].
//  4. Owners measure it.
//
// So the first decision with loads is that of period 2: the ranges assigned in period 0 are new there, and
// are first measured in period 1.
//
// Moving keys takes no time here, and costs only budget. Equal configurations have equal results, on any
// computer.
package policylab
