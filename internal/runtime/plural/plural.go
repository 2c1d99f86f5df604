// Package plural formats counts for logs and errors.
package plural

import "fmt"

// Count returns a number and its noun: 1 lease, 2 leases.
func Count[N int | uint64 | int64 | uint32](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
