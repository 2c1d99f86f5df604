// Package access authorizes calls to a manager. The default is to deny: a small
// file lists which identities have which role in which namespaces:
//
//	rules:
//	  - identity: spiffe://example.org/manager/m1
//	    role: manager
//	    namespaces: ["*"]
//	  - identity: spiffe://example.org/owner/sessions/{name}
//	    role: owner
//	    namespaces: [sessions]
//	  - identity: dns:cache-a.example.org
//	    role: owner
//	    namespaces: [cache]
//	    names: [cache-a]
//	  - identity: spiffe://example.org/lookup/sessions
//	    role: lookup
//	    namespaces: [sessions]
//	  - identity: token:alice
//	    role: operator
//	    namespaces: ["*"]
//	tokens:
//	  - name: alice
//	    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    expires: 2027-01-01
//
// # Identities
//
// The identities of a certificate are its subject alternative names, as package secure
// verified them. The identity of a bearer token, from the header "authorization: Bearer
// TOKEN", is "token:" and the token's name; the file contains only the token's hash. A
// caller may have both. A caller without identities may only call the health service
// (grpc.health.v1). A plaintext token is accepted only on the loopback interface.
//
// # Roles
//
//   - owner: holds leases in its namespaces, under its own name. {name} in the identity
//     of the rule matches one segment of a path or one label of a host name. The owner's
//     name is then the matched text, or a template in names, such as "{name}:8080".
//     Without {name}, names lists the owner names that the identity may use.
//   - lookup: follows the table of its namespaces and calls all read methods for them.
//   - operator: a lookup that may also change its namespaces: create, update, delete,
//     drain, move. With "*" it may also manage the members of the group.
//   - manager: the calls between managers, for all namespaces: follow tables, keep the
//     catalog, add members, and forward calls. It holds no leases and changes no
//     namespace on its own behalf.
//
// An identity may have several roles, in one rule each. Tokens are for people and
// scripts: they can be lookups and operators. Lists contain only the namespaces that
// the caller may read. Reflection is for every caller that has a role.
//
// The table in methods.go has the permission that each method requires. A method that
// is not in the table is denied to every caller, and a manager that has one does not start.
//
// # When calls are authorized
//
// The tap of the gRPC server authenticates the caller and checks that it may call the
// method, before it reads a message. The namespace and the owner's name are in the
// message: they are checked before the handler gets it, for every message of a stream.
// A message with the same subject as the one before it costs two atomic loads.
//
// A stream ends when it is no longer permitted: the file changes, a token expires, or a
// certificate is revoked. Idle streams are checked several times a second. An expired
// certificate ends no stream, but the next connection needs a new one.
//
// A forwarded call has the identities of its original caller in a header. The receiving
// manager accepts this header from managers only, and authorizes the call again.
//
// # Reloading the file
//
// The file is read again every [Config.Poll], and applied when it is complete and valid.
// An invalid file changes nothing; the log has the line and the reason. The file must not
// be world-writable.
//
// # Audit log
//
// [Config.Audit] gets a line for the first admission of each owner process, every
// operation that changes something, every new file, and every denied call. After the
// first few denied calls of one caller, it gets their number every ten seconds. It never
// contains a token.
package access
