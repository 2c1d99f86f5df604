// Package election is the machine that decides which manager leads.
//
// # DESIGN
//
// There is one record in the store. The leader swaps it for a new one, with a
// new beat, every Renew. A standby that has itself seen the same record for
// TTL times the drift bound swaps it for one of its own, with the next term.
// Time is ours: the store is asked for nothing but compare-and-swap.
//
// Why two leaders never act at once: the leader's authority ends TTL after it
// *sent* its last successful swap. The standby starts to count when it
// *receives* the record that this swap wrote, which is later; and it counts
// for TTL times the drift bound, which is longer on any clock. Its own swap
// succeeds only if the record has not been renewed meanwhile. So a stale read
// or a late watch can make it wait longer, or fail, but never act too early.
//
// A swap whose outcome is unknown is resolved by reading. Until then it counts
// for nothing; and since the machine repeats only the very same swap, what is
// read tells what happened. A watch event that shows the record of a swap under way
// proves as much, so that authority does not wait for the answer.
//
// A leader whose renewals are repeatedly late resigns, and stands back: see limping.go.
package byrecord
