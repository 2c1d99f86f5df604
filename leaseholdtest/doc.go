// Package leaseholdtest runs a cluster inside a test: real managers, real owners and
// lookups, with a network in memory and a clock that the test advances. Servers in it
// are killed, stopped and cut off in microseconds, and a lease of ten seconds runs out
// at once.
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
// The test is a bubble of testing/synctest: whatever it uses of package time, and
// whatever its servers and our libraries use, is on a clock that stands still while
// anything runs, and jumps to the next timer when nothing can. So nothing is timed,
// and nothing needs to be: time.Sleep costs nothing, and [Cluster.Advance] is the same
// with an assurance.
//
// What synctest asks for holds here, too:
//
//   - All goroutines must have ended when the test returns; [Node.Cleanup] helps.
//   - A goroutine that waits for something from outside, a real socket for instance,
//     holds the clock.
//   - So does one that waits for a [sync.Mutex] or [sync.RWMutex]. That is harmless if
//     the goroutine that has the lock goes on without time passing. But if it sleeps, or
//     reads from the network, or calls another server, it waits for the clock, which waits
//     for the goroutine that wants the lock: the test hangs until the -timeout of go test,
//     and shows a goroutine in sync.Mutex.Lock. Do not hold a lock over
//     anything that takes time, or use a channel with one slot as the lock: to send
//     is to lock, to receive is to unlock, and the clock goes on while a goroutine waits
//     for it. It must be made within the test, and not in a variable of a package.
//
// A test that fails by t.Fatal returns there, and what would have ended its goroutines
// is left out unless it was deferred or is a cleanup. Then a panic follows the message,
// about blocked goroutines that remain: what went wrong is in the lines above it.
//
// # Servers
//
// A [Node] is a computer. A server lives on one if it has joined with its
// [Node.OwnerConfig] or [Node.MovingConfig], listens on its [Node.Listen] and dials with its [Node.Dial] or
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
