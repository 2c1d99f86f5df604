// Package keyindex finds the range that contains a key in the time of two or three cache misses.
//
// # Design
//
// A lookup uses the index for every request of its caller. A binary search over the starts of
// 64,000 ranges takes 16 steps, each with an unpredictable branch and half of them with a cache
// miss: 150 to 200 ns.
//
// The index is a radix tree of one level over the starts. Its root has about as many slots as there
// are ranges, each for an equal part of the keys between the first and the last start. A slot has
// the index of the range that contains its first key. If starts are hashes, as in consistent
// hashing, few slots have more than two starts. The search then compares the key with the next two
// starts, without a branch, in time independent of the number of ranges.
//
// Keys that an application assigns in order may be clustered. One cluster is not a problem, since
// only the keys between the first and the last start are divided into slots. With several clusters,
// or one cluster and a start far away, some slots have many starts. Such a crowded slot has a
// second level of the same kind; starts that share a slot there are found by binary search. So
// every search takes at most a logarithmic number of steps.
//
// A deeper tree would only be faster for clusters within clusters, and a tree without binary search
// has up to 21 levels. Slots that also contain the next start would save a cache miss, but are four
// times as large, which costs it again.
package keyindex
