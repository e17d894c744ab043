// Command azure runs the simulated Resource Manager of Azure on loopback until it is interrupted, and prints the environment that a provider reaches it by.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
)

func main() {
	ctx, stop := lab.UntilEnd(context.Background())
	var options arm.Options
	command := &cobra.Command{Use: "azure", Short: "Run a simulated Azure Resource Manager", RunE: func(command *cobra.Command, _ []string) error {
		server, err := arm.Start(options)
		if err != nil {
			return err
		}
		defer server.Close()
		environment := server.Environment()
		for name, value := range map[string]string{
			"ARM_SUBSCRIPTION_ID": arm.Subscription, "ARM_TENANT_ID": arm.Tenant, "ARM_CLIENT_ID": arm.Client, "ARM_CLIENT_SECRET": arm.Secret,
		} {
			environment[name] = value
		}
		for name, value := range environment {
			fmt.Printf("export %s=%s\n", name, value)
		}
		<-command.Context().Done()
		return nil
	}}
	command.Flags().StringVar(&options.Dir, "dir", os.TempDir(), "folder that the certificate is written into")
	command.Flags().DurationVar(&options.Latency, "latency", 2*time.Second, "how long a write takes; 0 carries writes out at once")
	command.Flags().DurationVar(&options.MachineLatency, "machine-latency", 0, "how long a write of a virtual machine takes, if longer than --latency")
	code := lab.Execute(ctx, command, os.Args[1:])
	stop()
	os.Exit(code)
}
