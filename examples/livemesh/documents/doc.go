// Package documents is the Sectioned-Document service of Live Mesh, the basis of its
// device connectivity service and its activity service: documents in memory, made of
// named sections that are read and changed alone or together.
//
// A device stores its addresses in the document of its name, one section for each kind
// of address; other devices read them to connect to it. Documents have a TTL and are
// refreshed by their writers. When the server that owns a document ends, the document is
// lost; its writer is notified and writes it again.
//
// To receive changes, a client subscribes to the topic of the document's name (package
// pubsub): a change is acknowledged when all subscribers have the [News] in their queues.
// News may be duplicated and out of order; a subscriber keeps the version that is [Newer].
//
// # The API
//
// The API is HTTP and JSON. The second segment of the path is the name of the document.
// Requests are routed by it.
//
//	GET    /documents/NAME                    all sections
//	PATCH  /documents/NAME                    changes of several sections, all or none
//	DELETE /documents/NAME
//	POST   /documents/NAME/refresh            extends the TTL
//	GET    /documents/NAME/sections/SECTION
//	PUT    /documents/NAME/sections/SECTION   any JSON
//	DELETE /documents/NAME/sections/SECTION
//
// Every section has a version, which is also its ETag. A change with If-Match is executed
// only if the section has that version; with If-None-Match: * only if the section does not
// exist; otherwise it fails with 412. If-Match: * requires that the section exists, with any
// version. Other conditions fail with 400; a PATCH has its own. Versions are never reused,
// not even after a document was lost. Deletes are idempotent.
//
// An oversized document fails with 413, a missing document or section with 404. Errors of
// the lease are those of package leasehttp.
//
// Operations on a document are linearizable, until it is lost.
package documents
