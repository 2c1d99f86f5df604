// Package access decides who may do what at a manager: by default no caller may do
// anything. A small file says which identities have which role in which
// namespaces:
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
// A caller with a certificate has the identities of its subject alternative names, as
// package secure has verified them. A caller with a bearer token, in the header
// "authorization: Bearer TOKEN", has the identity "token:" and the token's name; the file
// has only the token's hash. A caller may have both. A caller with neither may ask for the
// server's health (grpc.health.v1) and nothing else. A token in plain text is accepted only
// on the loopback interface.
//
// # What roles may do
//
//   - owner: hold leases in its namespaces, under its own name. If the identity of
//     the rule has {name} in it, which stands for one segment of a path or one label
//     of a host name, the owner's name is what stands there; names may say how,
//     with "{name}:8080" for example. If it has not, names lists what it may call
//     itself.
//   - lookup: follow the table of its namespaces, and read whatever there is to
//     know about them.
//   - operator: the same, and give every order in its namespaces, including to
//     create, change and delete them. With "*" also what concerns the whole group:
//     its members.
//   - manager: what managers do among themselves, which is always about all
//     namespaces: follow tables, keep the catalog, add members, and pass on the
//     calls of others. It holds no leases and gives no orders of its own.
//
// An identity may have several roles, in a rule each. Tokens are for people and
// scripts: they can be lookups and operators. Lists show only the namespaces that
// the caller may read. Reflection is for every caller that has a role.
//
// The table in methods.go says what each method needs. A method that is not in it
// is permitted to no caller, and a manager with one does not start.
//
// # When it is decided
//
// Who calls is found out before anything of a message is read, in the tap of the
// gRPC server; and so is whether the caller may call that method at all. The
// namespace and the owner's name are in the message: they are looked at before the
// handler sees it, in every message of a stream. That costs nothing worth speaking
// of while they stay the same.
//
// A stream ends when what it goes by changes against it: when the file no longer
// permits it, a token expires, or a certificate is revoked. Streams that are silent
// are looked at several times a second. A certificate that expires ends none: the next
// connection needs a new one.
//
// A call that one manager passes on to another has the identities of the original
// caller in a header. The other takes that from managers only, refuses it from
// anybody else, and decides again.
//
// # The file
//
// It is read again every [Config.Poll], and taken when it stands still and makes
// sense; one that does not changes nothing, and the log says in which line it is
// wrong. The file must not be writable for all users.
//
// # What is written down
//
// [Config.Audit] gets a line for every owner that is let in for the first time,
// every order, every new file, and every call that is refused. Of many refusals of
// one caller the first few are told one by one and then their number, every ten
// seconds. A token is in none of them.
package access
