// Package gatewaycmd is the subcommand "gateway": an HTTP proxy that sends each request to the owner of its key.
package gatewaycmd
