// Package witness finds out whether two owners ever held a key at the same time.
//
// Not by the managers' word: every owner checks keys again and again (a
// [Sentinel]), and writes down the checks that succeeded, with the time on the
// clock that all processes of a computer share (a [Record]). An [Oracle] compares
// what the owners believed about each key.
package witness
