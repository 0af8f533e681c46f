package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const patience = 90 * time.Second // for each part to become ready, on a busy machine

// plane is where a running control plane is, as serve prints it in one line of JSON once all is ready.
type plane struct {
	Server     string `json:"server"`     // URL of the API server
	CA         string `json:"ca"`         // file with the certificates that its own is checked against
	Kubeconfig string `json:"kubeconfig"` // file with all this
	Token      string `json:"token"`      // bearer token of a member of system:masters

	dir string
}

// serve runs the control plane until SIGTERM or SIGINT. All that it writes is in -dir, controller-manager.log
// included; what kube-apiserver logs goes to standard error.
func serve(argv []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory for keys, data and kubeconfig (needed; best an empty one)")
	temporary := flags.Bool("temporary", false, "end with standard input too, and in the end remove -dir:\n"+
		"nothing is to outlive who started this")
	if err := flags.Parse(argv); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("serve needs -dir DIR")
	}
	absolute, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	var orphaned <-chan struct{} // never, if it is not temporary
	if *temporary {
		orphaned = inputEnds()
		defer os.RemoveAll(absolute)
	}
	return run(absolute, orphaned)
}

// run starts the parts, says when all is ready, and returns when told to end, when orphaned, or when a part fails.
// It does not wait for the API server to end, which would wait a minute for those who watch: what was written is in
// etcd's files, and these outlive a process that just ends.
func run(dir string, orphaned <-chan struct{}) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	p := newPlane(dir, ports[0])
	if err := p.write(); err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	etcd, err := startEtcd(p.path("etcd"), ports[1], ports[2])
	if err != nil {
		return err
	}
	failed, ready := make(chan error, 1), make(chan error, 1)
	go func() { failed <- p.runServer(ports[0], etcd) }()
	go func() { ready <- p.ready() }()
	select {
	case err = <-ready:
	case err = <-failed:
	case <-told:
		return nil
	case <-orphaned:
		return nil
	}
	if err != nil {
		return err
	}
	stop, err := p.startControllers()
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
		return err
	}
	select {
	case err = <-failed:
	case <-told:
	case <-orphaned:
	}
	return err
}

func newPlane(dir string, port int) *plane {
	return &plane{
		Server:     fmt.Sprintf("https://127.0.0.1:%d", port),
		CA:         filepath.Join(dir, "apiserver.crt"),
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		Token:      rand.Text(),
		dir:        dir,
	}
}

// runServer runs kube-apiserver, which is not to end. It signs its own certificate, into -dir.
func (p *plane) runServer(port int, etcd string) error {
	command := app.NewAPIServerCommand()
	command.SetArgs(p.serverFlags(port, etcd))
	return fmt.Errorf("kube-apiserver ended with exit code %d", cli.Run(command))
}

func (p *plane) serverFlags(port int, etcd string) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=192.0.2.1", // else it looks for a default route, and a machine without one has none
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--cert-dir=" + p.dir,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + p.path("sa.key"),
		"--service-account-key-file=" + p.path("sa.key"),
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", // a pod's service account need not exist before it
		"--enable-priority-and-fairness=false",
		"--profiling=false",
	}
}

// write puts into the directory what must be there before anything starts.
func (p *plane) write() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path("sa.key"), key, 0o600); err != nil {
		return err
	}
	tokens := p.Token + ",admin,admin,system:masters\n"
	if err := os.WriteFile(p.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	return clientcmd.WriteToFile(api.Config{
		CurrentContext: "test",
		Clusters:       map[string]*api.Cluster{"test": {Server: p.Server, CertificateAuthority: p.CA}},
		AuthInfos:      map[string]*api.AuthInfo{"admin": {Token: p.Token}},
		Contexts:       map[string]*api.Context{"test": {Cluster: "test", AuthInfo: "admin", Namespace: "default"}},
	}, p.Kubeconfig)
}

// ready waits until the API server says that it is ready.
func (p *plane) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	last := errors.New("it wrote no certificate")
	ask := func(ctx context.Context) (bool, error) {
		if _, err := os.Stat(p.CA); err != nil {
			return false, nil // it is made on the way
		}
		config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
		if err != nil {
			return false, err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false, err
		}
		last = client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	}
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, ask); err != nil {
		return fmt.Errorf("kube-apiserver was not ready in %v: %w", patience, last)
	}
	return nil
}

func (p *plane) path(name string) string {
	return filepath.Join(p.dir, name)
}

// inputEnds is closed when standard input ends, as it does when the process that holds its other side dies.
func inputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ended
}
