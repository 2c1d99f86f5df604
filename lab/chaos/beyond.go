package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasehold-dev/leasehold/lab/chaos/check"
)

// Clocks beyond the drift bound break what rests on the bound. It is excused, and counted: that
// two owners held a key (I1), that callers were told of the loss of what somebody still
// believed in (I4), and that owners who have found their clocks too slow stay away for a
// while (I6). Everything else holds, I9 above all: no fence accepts an older token after a
// newer one.

// excuse takes out of what was found what clocks are to blame for.
func (r *run) excuse(found []check.Violation) []check.Violation {
	if !r.cfg.Beyond {
		return found
	}
	return slices.DeleteFunc(found, func(v check.Violation) bool {
		excused := v.Invariant == "I1" || v.Invariant == "I4" || v.Invariant == "I6"
		if excused {
			r.report.Excused += v.Times
		}
		return excused
	})
}

// noticed is what an owner's log says when it has found its clock too slow.
const noticed = "this computer's clock is too slow"

// notice counts how often owners have noticed.
func (r *run) notice() {
	for _, o := range r.cluster.Owners {
		log, err := os.ReadFile(filepath.Join(r.cfg.Dir, o.Name+".log"))
		if err == nil { // one that has said nothing has noticed nothing
			r.report.Noticed += bytes.Count(log, []byte(noticed))
		}
	}
}
