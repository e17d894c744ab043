// Command machine-controller-manager-provider-iac is the machine controller of Gardener's
// machine-controller-manager, with a driver that creates instances through machine-iac-operator. It
// makes any provider module or stack a provider of Gardener. Its flags are those of MCM's machine
// controller.
package main

import (
	"fmt"
	"os"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	"github.com/machine-iac/machine-iac-operator/gardener/driver"
)

// inCluster is MCM's value for the Pod's service account.
const inCluster = "inClusterConfig"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "machine-controller-manager-provider-iac:", err)
		os.Exit(1)
	}
}

func run() error {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()

	config, err := control(server)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the control cluster: %w", err)
	}
	client, err := dynamic.NewForConfig(rest.AddUserAgent(config, "machine-controller-manager-provider-iac"))
	if err != nil {
		return fmt.Errorf("connecting to the control cluster: %w", err)
	}
	return app.Run(server, driver.New(client, driver.Options{
		CreationTimeout: server.SafetyOptions.MachineCreationTimeout.Duration,
	}))
}

// control returns the configuration of the control cluster by MCM's rules: without a kubeconfig of
// its own it is the target cluster.
func control(server *options.MCServer) (*rest.Config, error) {
	path := server.ControlKubeconfig
	switch path {
	case "":
		path = server.TargetKubeconfig
	case inCluster:
		path = ""
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	// Each create reads and watches a Machine in addition to MCM's own calls.
	config.QPS, config.Burst = server.KubeAPIQPS*2, int(server.KubeAPIBurst)*2
	return config, nil
}
