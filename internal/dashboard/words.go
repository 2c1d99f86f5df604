package dashboard

import (
	"fmt"
	"strings"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// enumText is a name of the protocol in words: what is after its prefix. A value of a
// newer peer is its number.
func enumText(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", " "))
}

// reasonText says why an owner was given a range, as the end of a sentence; "" if that is
// not known.
func reasonText(r leaseholdv1.Reason) string {
	switch r {
	case leaseholdv1.Reason_REASON_UNSPECIFIED:
		return ""
	case leaseholdv1.Reason_REASON_JOINED:
		return "because owners have joined"
	case leaseholdv1.Reason_REASON_GONE:
		return "because owners have gone"
	case leaseholdv1.Reason_REASON_LOAD:
		return "to divide the load"
	case leaseholdv1.Reason_REASON_LEAVING:
		return "because an owner wants to leave"
	case leaseholdv1.Reason_REASON_DRAIN:
		return "because an operator has an owner drained"
	case leaseholdv1.Reason_REASON_ORDER:
		return "because an operator asked for it"
	case leaseholdv1.Reason_REASON_REBALANCE:
		return "because an operator asked for the keys to be divided anew"
	case leaseholdv1.Reason_REASON_CONFIGURED:
		return "because the namespace was configured otherwise"
	case leaseholdv1.Reason_REASON_JOINT:
		return "to make leases one that lay side by side"
	}
	return fmt.Sprintf("for a reason that this manager does not know (%d)", r)
}
