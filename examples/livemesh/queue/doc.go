// Package queue is the Queue service of Live Mesh: a queue in memory for each device. Other
// services enqueue messages, and the device receives them when it is online.
//
// # Guarantee
//
// Once a message is enqueued, the device receives it, or a report that messages were lost.
//
// That holds from the device's first request on, which opens the queue. So a device opens its
// queue before it publishes its name.
//
// A queue has an epoch, which changes whenever its state is lost, and numbers its messages from
// 1 in each epoch. Each request of a device contains its epoch and the number of the last message
// that it has received. If the queue has another epoch, because its server was killed or it
// expired without requests, the response reports a possible loss. A full queue refuses messages;
// a sender that cannot wait leaves a mark instead, which reports missed messages. Messages stay
// until the device acknowledges them: they may be duplicated, but none is skipped.
//
// # Losses of other services
//
// A device registers the names of other services that it depends on as interests of its queue.
// When the state of such a name is lost with its server, the queue has a message about it (PRS
// 3.2), so that the device need not follow all services. A device sets its interests before it
// writes the state; then no later loss goes unnoticed. If the queue itself is lost, the device
// must assume that all of its state is lost.
//
// # The API
//
// The API is HTTP and JSON. The second segment of the path is the name of the queue. Requests are
// routed by it.
//
//	POST /queues/NAME/messages     any JSON; with ?overflow=mark a full queue leaves a mark
//	GET  /queues/NAME/messages?epoch=E&after=N&wait=30s
//	PUT  /queues/NAME/interests    [{"service": S, "name": N}, ...]
//
// A GET with an epoch acknowledges all messages up to its number, and waits for later ones.
//
// Enqueuing into a full queue fails with 503 and the kind "limit", an oversized message with 413.
package queue
