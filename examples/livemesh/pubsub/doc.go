// Package pubsub is the Publish-Subscribe service of Live Mesh: topics in memory, with their
// subscribers. A published message is enqueued in the queue of each subscriber.
//
// # Guarantee
//
// Of each acknowledged message, each subscriber receives a copy in its queue, or a report that it
// missed messages. The queue reports it:
//
//   - The queue had no room, and has a mark.
//   - The queue was lost, and has another epoch.
//   - The topic was lost, with its subscriptions, when its server was killed. The queue has a
//     message about the loss, because a subscriber registers the topic as an interest of its
//     queue before it subscribes.
//   - The subscription expired. The subscriber detects it by the TTL, or when it refreshes.
//
// A publication that was not acknowledged may have reached some subscribers: the publisher
// retries, and subscribers receive duplicates.
//
// # Why Publish checks the lease only once
//
// A subscription never changes, until it expires or is removed. So the subscriptions that Publish
// has read stay valid if the lease ends while messages are being enqueued, and it need not check
// the lease again. PRS 3.1 describes this exception: Subscribe and Unsubscribe do all steps, and
// Publish is available for longer.
//
// # The API
//
// The API is HTTP and JSON. The second segment of the path is the name of the topic. Requests are
// routed by it.
//
//	PUT    /topics/TOPIC/subscriptions/QUEUE           subscribes, or refreshes
//	POST   /topics/TOPIC/subscriptions/QUEUE/refresh   404 if it has expired or was lost
//	DELETE /topics/TOPIC/subscriptions/QUEUE
//	POST   /topics/TOPIC/messages                      any JSON
package pubsub
