package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs etcd in this process, and returns the URL at which it serves.
func startEtcd(dir string, clientPort, peerPort int) (string, error) {
	client := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", clientPort)}
	peer := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", peerPort)}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true // nothing here need outlive a crash of the machine
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return client.String(), nil
	case err = <-etcd.Err():
	case <-time.After(patience):
		err = fmt.Errorf("not ready in %v", patience)
	}
	return "", fmt.Errorf("etcd: %w", err)
}

// startControllers runs kube-controller-manager in a process of its own (two of Kubernetes' servers do not fit into
// one: both register the same metrics and flags), and returns what stops it. It ends with its standard input, which
// is this process' to hold: it cannot be left behind.
func (p *plane) startControllers() (stop func(), err error) {
	log, err := os.Create(p.path("controller-manager.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.Command(self, "kube-controller-manager",
		"--kubeconfig="+p.Kubeconfig,
		"--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller",
		"--leader-elect=false",
		"--secure-port=0",
	)
	child.Stdout, child.Stderr = log, log
	input, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("kube-controller-manager: %w", err)
	}
	return func() {
		_ = input.Close()
		_ = child.Wait()
	}, nil
}

// freePorts returns ports of loopback that nobody listens at. They are below those that the system gives to
// outgoing connections, so that none of these takes one before it is used.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer listener.Close() // held until all are found, so that they differ
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, errors.New("no free port between 20000 and 32000")
}
