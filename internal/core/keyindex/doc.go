// Package keyindex finds the range that contains a key, among many, in the time
// of two or three cache misses.
//
// # Design
//
// A lookup asks this for every request of its caller. A binary search over the
// starts of 64,000 ranges takes 16 steps, each with a branch that nobody can
// predict and half of them with a cache miss: 150 to 200 ns.
//
// The starts are the keys of a radix tree of one level. Its root has about as
// many slots as there are ranges, each for an equal part of the keys between the
// first and the last start, and says which range the part begins in. Where
// ranges begin at hashes, as those of consistent hashing do, few slots have more
// than two starts: what is left is to compare the key with the next two, which
// needs no branch. That takes the same time however many ranges there are.
//
// Keys that an application orders itself may crowd. That they all lie in a small
// part of the key space does not matter, since only the part between the first
// and the last start is cut into slots. If there are several such parts, or one
// and a start far away, their slots have many starts. A crowded slot has a second
// level of the same kind, which tells its starts apart; what is still together
// there is searched by halves. So no search takes more than a logarithmic number
// of steps.
//
// A deeper tree was not worth it: it would be quicker only for starts that crowd
// within crowds, and a tree that never searches has up to 21 levels. Slots that
// hold the next start besides its number save a cache miss and lose it again by
// being four times as large.
package keyindex
