//go:build !linux

package etcd

func fileIdentity(string) string { return "" }
