//go:build life

package life

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
)

var azure = platform{
	name: "azure", module: "modules/azure", provider: "azurerm",
	infrastructure: "[simulated Resource Manager](../test/azure/main.go), writes take 2 s, with the permissions of spec.rights",
	lacks: map[string]string{
		stepImage: "the module names an image by its ID and reads it nowhere: only a create needs it",
	},
	open:  openAzure,
	above: &exception{limits{13, 7, 9}, "azurerm reads an interface with each thing on it around each write"},
}

func openAzure(w *world) *site {
	guard := w.guard()
	s, _ := openResourceManager(w, arm.Options{Latency: 2 * time.Second, Allowed: guard.Allows})
	s.deny = denying(guard, "Microsoft.Compute/virtualMachines/write", "Microsoft.Compute/virtualMachines/delete")
	s.refusal = "AuthorizationFailed"
	return s
}

func openResourceManager(w *world, options arm.Options) (*site, *arm.Server) {
	options.Dir = w.dir
	server, err := arm.Start(options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		server.Close()
		for _, problem := range server.Problems() {
			w.t.Error(problem)
		}
	})
	const machines = "Microsoft.Compute/virtualMachines/"
	login := func(secret string) map[string][]byte {
		return map[string][]byte{
			"azure_subscription_id": []byte(arm.Subscription), "azure_tenant_id": []byte(arm.Tenant), "azure_client_id": []byte(arm.Client), "azure_client_secret": []byte(secret),
		}
	}
	// A resource group and a load balancer are the installer's.
	mine := func(names []string) (found []string) {
		for _, one := range server.Names() {
			_, resource, _ := strings.Cut(one, "/")
			for _, name := range names {
				if resource == name || strings.HasPrefix(resource, name+"_") || strings.HasPrefix(resource, name+"-nic") {
					found = append(found, one)
				}
			}
		}
		return found
	}
	return &site{
		status: &configv1.InfrastructureStatus{PlatformStatus: &configv1.PlatformStatus{Type: configv1.AzurePlatformType, Azure: &configv1.AzurePlatformStatus{
			ResourceGroupName: clusterID + "-rg", CloudName: configv1.AzurePublicCloud, ARMEndpoint: "https://" + server.Environment()["ARM_METADATA_HOSTNAME"],
		}}},
		authorities: w.read(server.Environment()["SSL_CERT_FILE"]),
		credentials: secret("azure-cloud-credentials", login(arm.Secret)),
		rotate: func(context.Context) (map[string][]byte, error) {
			server.Rotate("rotated")
			return login("rotated"), nil
		},
		set:     w.example(nil),
		change:  w.otherSecret("credentialsSecret", login(arm.Secret)),
		refused: with("vmSize", "Standard_D8s_v3"), invalid: with("vmSize", ""),
		look: func(_ context.Context, name string) ([]string, error) {
			if id := server.Property(machines+name, "id"); id != "null" {
				return []string{id}, nil
			}
			return nil, nil
		},
		userData: func(_ context.Context, name string) (string, error) {
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(server.Property(machines+name, "properties", "osProfile", "customData"), `"`))
			return string(raw), err
		},
		remove: func(_ context.Context, name string) error {
			server.Remove(machines + name)
			server.Remove("Microsoft.Network/networkInterfaces/" + name + "-nic")
			server.Remove("Microsoft.Compute/disks/" + name + "_OSDisk")
			return nil
		},
		copy: func(_ context.Context, from, name string) (string, error) {
			err := server.Copy(from, name, map[string]any{"kubernetes.io_cluster." + clusterID: "owned"})
			return "azure://" + arm.Group + "/providers/" + machines + name, err
		},
		left:  func(_ context.Context, names []string) ([]string, error) { return mine(names), nil },
		calls: made(&server.Calls),
	}, server
}
