// Package nemesis hurts a cluster: it kills and stops processes, and has troubles
// befall the network.
//
// What it does comes in storms. A [Plan] draws the strikes of a storm from a seed:
// what happens when, for how long, and to whom, as far as that can be said
// before. Who leads, say, is found out when the leader is to be struck. In a storm
// strikes overlap as they like; but a process that one has killed is not stopped by
// another. At the end of a storm everything is as before: whoever was killed has been
// started again, and the network is well.
package nemesis
