// Package managers is the former name of proc.Client, for callers that have not moved yet.
package managers

import "github.com/leasehold-dev/leasehold/internal/proc"

type (
	Group    = proc.Client
	Question = proc.Question
)

var Dial = proc.Dial
