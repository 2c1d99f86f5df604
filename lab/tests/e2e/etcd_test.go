//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// An etcdServer is a process of an etcd cluster, which may be started again.
type etcdServer struct {
	*process
	url  string // for clients
	args []string
	log  string
}

func (s *etcdServer) start(t *testing.T) {
	t.Helper()
	s.process = launch{program: etcdProgram, args: s.args, log: s.log}.start(t)
}

// An etcdCluster is three etcd servers.
type etcdCluster []*etcdServer

// startEtcd starts an external cluster.
func startEtcd(t *testing.T) etcdCluster {
	t.Helper()
	var (
		c     etcdCluster
		peers []string
	)
	for i := range 3 {
		dir, name := t.TempDir(), fmt.Sprintf("e%d", i+1)
		peer := "http://" + freeAddr(t)
		s := &etcdServer{url: "http://" + freeAddr(t), log: filepath.Join(dir, name+".log")}
		s.args = []string{
			"--name=" + name, "--data-dir=" + filepath.Join(dir, "data"), "--log-level=warn",
			"--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		}
		peers = append(peers, name+"="+peer)
		c = append(c, s)
	}
	for _, s := range c {
		s.args = append(s.args, "--initial-cluster="+strings.Join(peers, ","))
		s.start(t)
	}
	c.leader(t)
	return c
}

// leader waits until a server leads.
func (c etcdCluster) leader(t *testing.T) *etcdServer {
	t.Helper()
	var leader *etcdServer
	eventually(t, "etcd has a leader", func() error {
		failed := errors.New("no server leads")
		for _, s := range c {
			if !s.Alive() {
				continue
			}
			leads, err := s.leads(t)
			if err == nil && leads {
				leader = s
				return nil
			}
			failed = errors.Join(failed, err)
		}
		return failed
	})
	return leader
}

func (s *etcdServer) leads(t *testing.T) (bool, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop()})
	if err != nil {
		return false, err
	}
	defer client.Close() //nolint:errcheck // no call is in progress
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, s.url)
	if err != nil {
		return false, err
	}
	return status.Leader == status.Header.MemberId, nil
}

// followers returns all servers except the leader.
func (c etcdCluster) followers(leader *etcdServer) etcdCluster {
	var out etcdCluster
	for _, s := range c {
		if s != leader {
			out = append(out, s)
		}
	}
	return out
}

// managers starts managers whose store is the cluster.
func (c etcdCluster) managers(t *testing.T, n int) *group {
	t.Helper()
	var urls []string
	for _, s := range c {
		urls = append(urls, s.url)
	}
	g := &group{}
	for i := range n {
		name, addr := fmt.Sprintf("m%d", i+1), freeAddr(t)
		m := &manager{name: name, addr: addr, log: filepath.Join(t.TempDir(), name+".log")}
		m.args = []string{"manager", "run", "--listen=" + addr, "--http=", "--etcd=" + strings.Join(urls, ","), "--ttl=" + leaderTTL.String()}
		m.start(t)
		g.managers = append(g.managers, m)
	}
	g.leader(t)
	return g
}
