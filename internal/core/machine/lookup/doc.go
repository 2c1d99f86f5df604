// Package lookup is the machine of the lookup library: a copy of the lease
// table that follows the leader's, and the losses that this brings to light.
//
// # DESIGN
//
// A lookup asks the leader, every so often, what has changed since its LSN;
// the leader also sends changes unasked as they happen. Changes are applied in
// order and without gaps. A snapshot replaces them where it is smaller; what
// was lost in between is then read from the entries themselves, each of which
// knows when state in its range was last lost.
//
// No loss may go unreported. An answer to a request proves that the lookup
// knew everything that had been committed when it *sent* the request. Once
// that proof is too old, because no manager answers, the lookup emits that contact
// is lost, and goes on answering from the table that it has. When a manager answers
// again, the changes or the table in its answer contain every loss since that
// table's LSN; these are emitted, and then that contact is restored.
//
// PRS (section 2.1) reports everything as lost when contact is lost: its recovery
// notifications are conservative. Config.ConservativeRecovery does the same.
package lookup
