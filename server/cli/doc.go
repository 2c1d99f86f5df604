// Package cli is what the subcommands of leasehold share: the flags that find managers and
// secure connections, settings from files and the environment, exit statuses, errors that say
// what to do, and the text of what managers answer.
package cli
