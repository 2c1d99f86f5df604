// Package witness is a former name of package oracle, for callers that have not moved yet.
package witness

import "github.com/leasehold-dev/leasehold/internal/oracle"

type (
	Oracle   = oracle.Oracle
	Verdict  = oracle.Verdict
	Record   = oracle.Record
	Span     = oracle.Span
	Time     = oracle.Time
	Sentinel = oracle.Sentinel
)

const (
	Operation = oracle.Operation
	Belief    = oracle.Belief
	Size      = oracle.Size
	MaxBatch  = oracle.MaxBatch
)

var (
	NewOracle   = oracle.New
	NewSentinel = oracle.NewSentinel
	Read        = oracle.ReadRecords
	Write       = oracle.WriteRecords
	Now         = oracle.Now
	Timed       = oracle.Timed
)
