// Command controlplane is a Kubernetes control plane for tests, in one binary made of Kubernetes' own modules:
//
//	controlplane serve -dir DIR            etcd, kube-apiserver and kube-controller-manager on loopback
//	controlplane kubectl ARGUMENT...       kubectl, also when the binary is called by that name
//	controlplane kstatus < OBJECTS.json    what kstatus says of an object, or of each item of a List
//
// It needs no container, no root and no network. There are no nodes: a pod is never run.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	// what the mains of kube-apiserver, kube-controller-manager and kubectl import for its effect
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name != "kubectl" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	os.Args = append([]string{name}, args...) // Kubernetes' commands read os.Args themselves
	if err := command(name, args); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func command(name string, args []string) error {
	switch name {
	case "serve":
		return serve(args)
	case "kstatus":
		return kstatus(os.Stdin, os.Stdout)
	case "kubectl":
		if cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()) != nil {
			os.Exit(1) // it has said why
		}
		return nil
	case "kube-controller-manager": // started by serve
		go func() {
			<-inputEnds()
			os.Exit(0)
		}()
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	}
	return errors.New("usage: controlplane serve -dir DIR | kubectl ARGUMENT... | kstatus < OBJECTS.json")
}
