// Package queue is the Queue service of Live Mesh: a queue in memory for each device, in
// which other services leave messages, and from which the device takes them when it is
// online.
//
// # What it promises
//
// Once a message is enqueued, the device receives it, or learns that it has lost messages.
//
// That holds from its first request on: a device opens its queue, by asking for messages,
// before it tells anybody of it.
//
// Every life of a queue has a name of its own, its epoch, and numbers its messages from 1
// on. A device says with each request which epoch it knows and up to which number it has
// everything. If the queue has another epoch, because the server that had it died, or
// because nobody asked for so long that it expired, the answer says that messages may have
// been lost. A queue that has no room refuses messages; a sender that cannot wait has a
// mark left in it instead, so that the device learns that it missed something. Messages
// stay until the device has said that it has them, so that one may be received twice, but
// none is passed over.
//
// # Losses of other services
//
// A device tells its queue which names of other services it depends on. When a server of
// such a service dies, and the state of a name with it, the queue has a message about it
// (PRS 3.2), so that the device need not follow all services itself. It says so before it
// writes what it depends on; then no loss after that goes unnoticed. If the queue itself is
// lost, the device must assume that all of it is.
//
// # The API
//
// It is HTTP and JSON. The second segment of the path is the name of the queue, and what
// requests are routed by.
//
//	POST /queues/NAME/messages                 any JSON; with ?overflow=mark never full
//	GET  /queues/NAME/messages?epoch=E&after=N&wait=30s
//	GET  /queues/NAME/events?epoch=E&after=N   the same, pushed as server-sent events
//	POST /queues/NAME/ack?epoch=E&after=N      for those that are pushed
//	PUT  /queues/NAME/interests                [{"service": S, "name": N}, ...]
//	DELETE /queues/NAME
//
// A queue without room answers 429, and a message that is too long 413.
package queue
