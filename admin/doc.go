// Package admin is a client for operators and their programs. It asks the managers of a group for
// their status, namespaces, owners, ranges and events, and gives orders: create a namespace, drain
// an owner, move a range.
//
//	c, err := admin.New(admin.Config{Managers: []string{"m1:7400", "m2:7400", "m3:7400"}})
//	if err != nil { ... }
//	defer c.Close()
//	owners, err := c.Owners(ctx, "presence")
//
// Any manager answers; it forwards to the leader what only the leader can do. A request goes to
// the managers in turn until one answers, within Config.Timeout or the deadline of the context.
// Requests that change a namespace or a group are sent once; orders that move ranges do no harm twice,
// and are sent to one manager after the other. If no answer arrives, the error is
// leasehold.ErrIndeterminate: the change may have been made. If no manager could be reached, it is an
// UnreachableError, and nothing was changed.
//
// The types of this package are the one JSON form of what managers report: the command
// "leasehold ... --json" and the dashboard encode them as they are. Numbers that are names rather
// than amounts (keys, sessions, generations, terms, LSNs, ids) are strings, because many readers of JSON
// keep only 53 bits of a number. The limit of a range is "end" at the end of the key space. Times are
// RFC 3339, durations are in seconds. Later versions may add fields; they do not rename or remove any.
//
// A Client may be used by several goroutines at once. Each call costs one round trip to a manager,
// and one more from there to the leader, unless its comment says otherwise.
package admin
