// Package documents is the Sectioned-Document service of Live Mesh, the basis of its
// device connectivity service and its activity service: documents in memory, made of
// named sections that are read and changed together.
//
// A device stores its addresses in the document of its name, one section for each kind
// of address; other devices read them to connect to it. Documents have a TTL and are
// refreshed by their writers. When the server that owns a document ends, the document is
// lost; its writer is notified and writes it again.
//
// To follow changes, a client subscribes to the topic of the document's name (package
// pubsub), and reads the document after each message: a change is acknowledged when all
// subscribers have the [News] in their queues.
//
// # The API
//
// The API is HTTP and JSON. The second segment of the path is the name of the document.
// Requests are routed by it.
//
//	GET    /documents/NAME            all sections
//	PATCH  /documents/NAME            a [Change] of several sections, all or none
//	DELETE /documents/NAME
//	POST   /documents/NAME/refresh    extends the TTL
//
// Every section has a version. A change whose conditions are not met fails with 412. Versions are
// never reused, not even after a document was lost. A change that deletes is idempotent.
//
// An oversized document fails with 400 or 413, a missing document with 404. Errors of the lease
// are those of package leasehttp.
//
// Operations on a document are linearizable, until it is lost.
package documents
