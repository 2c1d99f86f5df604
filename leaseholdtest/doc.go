// Package leaseholdtest runs a cluster inside a test: real managers, real owners and
// lookups, with a network in memory and a clock that the test advances. Servers in it
// are killed, stopped and cut off in microseconds, and a lease of ten seconds runs out
// at once.
//
//	func TestSurvivesAKill(t *testing.T) {
//		leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
//			a, b := c.Node("a"), c.Node("b")
//			startMyServer(t, a) // joins with a.OwnerConfig(), serves on a.Listen(8080)
//			startMyServer(t, b)
//			c.Settle()
//			...
//			a.Kill()
//			c.Settle() // until b has all keys
//			...
//		})
//	}
//
// # Time
//
// The test is a bubble of testing/synctest: whatever it uses of package time, and
// whatever its servers and our libraries use, is on a clock that stands still while
// anything runs, and jumps to the next timer when nothing can. So nothing is timed,
// and nothing needs to be: time.Sleep costs nothing, and [Cluster.Advance] is the same
// with an assurance. What synctest asks for holds here, too. All goroutines must
// have ended when the test returns; [Node.Cleanup] helps. A goroutine that waits for
// something from outside, a real socket for instance, holds the clock.
//
// # Servers
//
// A [Node] is a computer. A server lives on one if it has joined with its
// [Node.OwnerConfig], listens on its [Node.Listen] and dials with its [Node.Dial] or
// [Node.DialContext]: then all that the world sees of it goes through the network of
// the cluster, and it is as good as killed when the network resets its connections and
// lets nothing through any more. What it does inside goes on until it has noticed, so
// that a killed server may still write to a variable that it shares with the test, as
// it may to a database.
//
// # What a schedule means
//
// Virtual time is exact, but which goroutine runs first is up to the scheduler, as in
// production. A test that depends on it fails at times, and has found something.
package leaseholdtest
