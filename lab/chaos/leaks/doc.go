// Package leaks measures what processes use while they live: memory, goroutines, descriptors. A
// process that runs for months must not use more and more, whatever happens to it.
//
// Each process is sampled after each storm, when all faults are over. Compared are the medians of
// the second and the last quarter of its life: in the first quarter caches and pools fill, and a
// single sample depends on garbage collection. A process that is killed begins another life, and a
// short one proves nothing: so some processes must be spared.
package leaks
