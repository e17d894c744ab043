// Command gcp runs the simulated Compute Engine of Google on loopback until it is interrupted, and prints the environment that a provider reaches it by.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/gcp/compute"
)

func main() {
	var options compute.Options
	command := &cobra.Command{Use: "gcp", Short: "Run a simulated Compute Engine", RunE: func(command *cobra.Command, _ []string) error {
		ctx, stop := lab.UntilEnd(command.Context())
		defer stop()
		server, err := compute.Start(options)
		if err != nil {
			return err
		}
		defer server.Close()
		credentials, err := server.Credentials()
		if err != nil {
			return err
		}
		for name, value := range server.Environment() {
			fmt.Printf("export %s=%s\n", name, value)
		}
		fmt.Printf("export GOOGLE_CREDENTIALS='%s'\n", credentials)
		<-ctx.Done()
		return nil
	}}
	command.Flags().StringVar(&options.Dir, "dir", os.TempDir(), "folder that the certificate is written into")
	command.Flags().DurationVar(&options.Latency, "latency", 2*time.Second, "how long a write takes; 0 carries writes out at once")
	os.Exit(lab.Execute(context.Background(), command, os.Args[1:]))
}
