package lookup

import (
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Contact reports that contact with the managers is lost, or restored. Config.OnContact and [WithContact] deliver it.
//
// While contact is lost it is unknown whether state was lost: callers should not recreate it, but wait. [Lookup.Find]
// goes on answering from the last table. When contact is restored, every loss that happened meanwhile has been
// reported, exactly: if there was none, nothing is to be done.
type Contact struct {
	// Lost: no manager has confirmed for Config.Stale that the table is complete.
	Lost bool
	// Age is for how long the table had not been known to be complete. If the computer
	// was suspended it may have been longer.
	Age time.Duration
	// LSN is that of the table. All losses up to it were reported.
	LSN leasehold.LSN
}
