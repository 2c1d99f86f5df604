package lookup

import (
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Contact reports that contact with the managers is lost, or restored. Config.OnContact and [WithContact] deliver it.
//
// While contact is lost it is unknown whether state was lost: callers should wait and not recreate state. [Lookup.Find]
// uses the last table. When contact is restored, every loss that happened meanwhile has been
// reported, exactly: without a loss, callers have nothing to do.
type Contact struct {
	// Lost is true if no manager has confirmed for Config.Stale that the table is complete.
	Lost bool
	// Age is the time since the table last contained all committed changes. If the computer
	// was suspended the real time may be longer.
	Age time.Duration
	// LSN is the LSN of the table. All losses up to it were reported.
	LSN leasehold.LSN
}
