// Package registers is a former name of package oracle, for callers that have not moved yet.
package registers

import "github.com/leasehold-dev/leasehold/internal/oracle"

type (
	Chronicle = oracle.Registers
	Request   = oracle.Request
	Answer    = oracle.Answer
)

const (
	Read  = oracle.Read
	Write = oracle.Write
	Swap  = oracle.Swap
	Lose  = oracle.Lose
)

var (
	NewChronicle = oracle.NewRegisters
	Model        = oracle.RegisterModel
)
