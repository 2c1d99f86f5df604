// Package actor is the processes of a chaos run that are not managers: owners and
// callers of a service of registers, and stores. They are hidden subcommands of the
// leasehold command.
//
// An owner keeps registers in memory, as figure 4 of the PRS paper has it, and says
// all the time which keys it believes to hold. A caller follows the lease table,
// reads and writes registers, and writes down what it was told. Neither gives up:
// they are to live through everything, or to be killed.
package actor
