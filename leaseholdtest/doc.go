// Package leaseholdtest runs a cluster inside a test: real managers, owners and
// lookups, with an in-memory network and virtual time. The test kills, pauses and partitions
// servers in microseconds, and a lease of ten seconds expires at once.
//
//	func TestSurvivesAKill(t *testing.T) {
//		leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
//			a, b := c.Node("a"), c.Node("b")
//			startMyServer(t, a) // joins with a.MovingConfig(), serves on a.Listen(8080)
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
// The test is a bubble of testing/synctest: the test, its servers and this module's
// libraries use package time with a virtual clock. It stands still while
// a goroutine runs, and jumps to the next timer when all are blocked. So a test does not depend
// on the speed of the machine. time.Sleep costs no real time, and [Cluster.Advance]
// also waits until all goroutines are blocked.
//
// The rules of synctest apply:
//
//   - All goroutines must have ended when the test returns; [Node.Cleanup] helps.
//   - A goroutine that waits for an event outside of the bubble, such as a real socket,
//     stops the clock.
//   - A goroutine that waits for a [sync.Mutex] or [sync.RWMutex] also stops the clock. That is
//     harmless if the holder of the lock runs without waiting. But if the holder sleeps,
//     reads from the network, or calls another server, it waits for the clock, and the clock
//     waits for the goroutine that wants the lock: the test hangs until the -timeout of go test,
//     and the trace contains a goroutine in sync.Mutex.Lock. Do not hold a lock during
//     operations that take time, or use a channel with capacity 1 as the lock: send
//     to lock, receive to unlock. The clock advances while a goroutine waits
//     for a channel. Create the channel within the test, not in a package variable.
//
// After t.Fatal only deferred functions and cleanups run, so goroutines may remain. Then a
// panic about blocked goroutines follows the message; the cause is in the lines above it.
//
// # Servers
//
// A [Node] is a computer. A server runs on a node if it joins with the node's
// [Node.OwnerConfig] or [Node.MovingConfig], listens with [Node.Listen] and dials with [Node.Dial] or
// [Node.DialContext]: then all of its messages use the network of
// the cluster. To kill it, the network resets its connections and drops all further messages.
// Its goroutines run until they fail, so a killed server may still write to a
// variable that it shares with the test, as a process may still write to a database.
//
// # Scheduling
//
// Virtual time is exact, but the scheduler chooses the order of goroutines, as in
// production. A test that depends on that order fails sometimes, and has found a race.
package leaseholdtest
