// Package crowd is thousands of owners and lookups in one process, so lean that
// they can share a computer with the manager that they are to keep busy.
//
// What they say is what real ones say. An owner is the machine of package owner,
// which decides all that the library's owners do. A lookup counts: it numbers its
// questions, asks as often as the library's does, follows the numbers of the
// changes without a gap, and knows how old its proof is; only the table itself it
// throws away. Both speak HTTP/2 by hand: a connection costs a goroutine and a
// few kB, and no more.
//
// A crowd is a process of its own, started by [Start], and told what to do by a
// line of JSON at a time. A program that starts one calls [Main] first of all.
package crowd
