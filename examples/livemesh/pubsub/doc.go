// Package pubsub is the Publish-Subscribe service of Live Mesh: topics in memory, each
// with its subscribers, to whose queues it passes on what is published.
//
// # What it promises
//
// Of each message whose publication was acknowledged, each subscriber gets a copy in its
// queue, or learns that it missed some. It learns so from its queue:
//
//   - The queue had no room, and has a mark.
//   - The queue was lost, and has another epoch.
//   - The topic was lost, with its subscriptions, when its server died. The queue has a
//     message about that, because a subscriber names the topic as an interest of its queue
//     before it subscribes.
//   - The subscription expired, which its subscriber knows, or learns when it refreshes it.
//
// A publication that was not acknowledged may have reached some: whoever publishes does so
// again, and subscribers get it twice.
//
// # Why Publish checks less
//
// A subscription never changes: it is there, until it expires or is removed. So what
// Publish reads stays right when the lease ends while messages are on their way, and it
// need not be asked again whether it is held. It is the exception that PRS 3.1 describes:
// Subscribe and Unsubscribe do all steps, and Publish is available for longer.
//
// # The API
//
// It is HTTP and JSON. The second segment of the path is the name of the topic, and what
// requests are routed by.
//
//	PUT    /topics/TOPIC/subscriptions/QUEUE?ttl=1h    subscribes, or refreshes with the same
//	POST   /topics/TOPIC/subscriptions/QUEUE/refresh   410 if it has expired or was lost
//	DELETE /topics/TOPIC/subscriptions/QUEUE
//	POST   /topics/TOPIC/messages                      any JSON
package pubsub
