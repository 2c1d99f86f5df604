// Package gateway is an HTTP proxy that sends each request to the owner of its key.
package gateway
