// Package managerd is the process of a manager: its settings, its store, the group that it joins, its
// pages and who may use them.
package managerd
