// Package vitals is what processes take while they live: memory, goroutines, descriptors. A
// process that is to run for months must not take more and more of them, whatever befalls it.
//
// Each process is asked after each storm, when everything is healed, so that what a fault
// takes for its time does not count. What is held against each other is the second
// quarter of its life and the last one, by their medians: the first quarter is for caches and
// pools that fill, and one moment says little where garbage is collected now and then. Half
// of its life lies between the two. A process that is killed has begun another life, and a
// short one proves nothing: so some must be spared.
package vitals
