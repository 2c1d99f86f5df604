// Package top is a live view of a cluster in a terminal: owners, loads, moves and events.
package top
