// Package oracle checks what a cluster did against what Leasehold promises, without asking the
// managers.
//
// For dual ownership and generations every owner checks its keys again and again (a [Sentinel])
// and writes down the checks that succeeded (a [Record]), with times on a clock that all processes
// of a computer share. An [Oracle] compares them.
//
// For services that keep values, [Registers] is a history of requests, and [RegisterModel] what a
// checker of linearizability holds it against.
package oracle
