// Package lookup is the state machine of the lookup library: a copy of the leader's lease
// table, and the losses that its changes contain.
//
// # DESIGN
//
// A lookup polls for the changes since its LSN, and the leader also broadcasts changes as they
// happen. Changes are applied in order and without gaps. A snapshot replaces them where
// it is smaller. The losses in between are then derived from the entries: each contains the LSN
// of the last loss in its range.
//
// No loss may go unreported. A reply proves that the lookup had all changes that were
// committed when it *sent* the request. When that proof is too old, because no manager
// replies, the lookup emits that contact is lost, and keeps its table. When a manager replies
// again, the changes or the snapshot in the reply contain every loss since that table's
// LSN. The lookup emits these losses, and then that contact is restored.
//
// In PRS (section 2.1) the whole key space is reported as lost when contact is lost: its recovery
// notifications are conservative. Config.ConservativeRecovery does the same.
package lookup
