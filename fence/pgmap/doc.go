// Package pgmap keeps the values of a leasemap in a table of PostgreSQL, through database/sql and any driver.
//
//	sessions := pgmap.Open(db, "sessions")
//	err := sessions.Create(ctx)
//	...
//	m, err := leasemap.Join(ctx, as, leasemap.Config[Session]{Store: sessions})
//
// A crash of a server then loses no acknowledged change: see "Persistence" in package leasemap. The row of a name has
// its fencing token. One statement compares the token and writes the row, so a late write of an
// earlier owner is refused, also one that was on its way when the server was killed.
//
// Other programs may read the table. The column value has the encoding of the map, JSON by default, and is null
// if the name has no value. A program that writes to it must not run while servers have the map.
//
// # Durability
//
// A value is as durable as the database: a failover to a replica that lags loses acknowledged changes, and tokens
// with them, so use synchronous replication. After the managers' store is restored from a backup, generations may be lower than those in the
// table, and all calls are refused: stop all servers, and set the columns generation and number to 0.
//
// # Cost
//
// Each load is a statement that updates a row, or inserts one without a value: otherwise a late write could follow it.
// Each batch is one statement. Rows without a value, and expired ones, remain until
// [Store.Prune] deletes them: call it once a day. A map has up to Config.MaxLoads loads at once, besides its saves, so set
// [database/sql.DB.SetMaxOpenConns]: the sum of all servers must stay below max_connections.
package pgmap
