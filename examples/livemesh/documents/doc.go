// Package documents is the Sectioned-Document service of Live Mesh, on which its
// device connectivity service and its activity service were built: documents in memory,
// made of named sections that are read and changed alone or together.
//
// A device keeps its addresses in the document of its name, one section for each kind
// of address; others read them to connect to it. Documents last for a time and are
// refreshed by whoever wants them to stay. When the server that owns a document dies,
// the document is gone, and whoever wrote it is told, and writes it again.
//
// Who wants to know of changes subscribes to the topic of the document's name (package
// pubsub): a change is acknowledged when all subscribers have the [News] in their queues.
// News may come in another order than the changes happened, and twice; whoever receives
// them keeps what is [Newer].
//
// # The API
//
// It is HTTP and JSON. The second segment of the path is the name of the document, and
// what requests are routed by.
//
//	GET    /documents/NAME                    all sections
//	PATCH  /documents/NAME                    changes of several sections, all or none
//	DELETE /documents/NAME
//	POST   /documents/NAME/refresh            lets it last for another TTL
//	GET    /documents/NAME/sections/SECTION
//	PUT    /documents/NAME/sections/SECTION   any JSON
//	DELETE /documents/NAME/sections/SECTION
//
// Every section has a version, which is also its ETag. A change with If-Match, or with
// If-None-Match: * for a section that must not be there yet, happens only if nobody has
// changed the section since; otherwise it is refused with 412. If-Match: * wants the
// section to be there, whatever its version. Other conditions are refused with 400; a PATCH
// has its own. Versions are never used again, not even when a
// document was lost. To delete what is not there does no harm, and is no failure.
//
// What is too large is refused with 413, and a document or section that is not there
// with 404. What the lease has to say is said as package leasehttp has it.
//
// All operations on a document happen one after the other: it is linearizable, until it
// is lost.
package documents
