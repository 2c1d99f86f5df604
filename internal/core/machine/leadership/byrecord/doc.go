// Package byrecord is leader election by a record in the store.
//
// # Design
//
// The store has one leader record. The leader swaps it for a new one, with a new beat, every Renew.
// A standby that has observed the same record for TTL times the drift bound swaps it for its own,
// with the next term. All timing is done by the managers: the store only provides compare-and-swap.
//
// Why two leaders never act at once: the leader's authority ends TTL after it *sent* its last
// successful swap. The standby starts to count when it *receives* the record of this swap, which is
// later; and it counts for TTL times the drift bound, which is longer on any clock. Its own swap
// succeeds only if the record was not renewed in the meantime. So a stale read or a delayed watch
// event can make it wait longer, or fail, but never act too early.
//
// A swap with an unknown outcome is resolved by a read. Until then it gives no authority. Since the
// machine only repeats the identical swap, the read determines the outcome. A watch event with the
// record of a swap in flight proves the same, so authority need not wait for the reply.
//
// A leader whose renewals are repeatedly late resigns and stands back: see limping.go.
package byrecord
