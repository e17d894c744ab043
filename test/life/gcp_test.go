//go:build life

package life

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/test/gcp/compute"
)

var gcp = platform{
	name: "gcp", module: "modules/gcp", provider: "google",
	infrastructure: "[simulated Compute Engine](../test/gcp/main.go), writes take 2 s, with the permissions of spec.rights",
	open:           openGCP,
}

func openGCP(w *world) *site {
	// An inventory alone needs a permission that no Machine does.
	guard := w.guard("cloudasset.assets.searchAllResources")
	server, err := compute.Start(compute.Options{Dir: w.dir, Latency: 2 * time.Second, Allowed: guard.Allows})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(server.Close)
	login := func() (map[string][]byte, error) {
		key, err := server.Credentials()
		return map[string][]byte{"service_account.json": key}, err
	}
	first, err := login()
	if err != nil {
		w.t.Fatal(err)
	}
	images := "projects/rhcos-cloud/global/images/"
	image := func(name string) func(map[string]any) {
		return func(spec map[string]any) { spec["disks"].([]any)[0].(map[string]any)["image"] = images + name }
	}
	return &site{
		status: &configv1.InfrastructureStatus{PlatformStatus: &configv1.PlatformStatus{
			Type: configv1.GCPPlatformType, GCP: &configv1.GCPPlatformStatus{ProjectID: compute.Project, Region: "us-central1"},
		}},
		authorities: w.read(server.Environment()["SSL_CERT_FILE"]),
		proxy:       server.Environment()["HTTPS_PROXY"],
		credentials: secret("gcp-cloud-credentials", first),
		rotate: func(context.Context) (map[string][]byte, error) {
			server.Rotate()
			return login()
		},
		set:     w.example(with("projectID", compute.Project)),
		change:  w.otherSecret("credentialsSecret", first),
		refused: with("machineType", "n2-standard-8"), invalid: with("onHostMaintenance", "Sometimes"),
		renew: func(context.Context) (func(map[string]any), error) {
			server.Remove(images + "rhcos-9-6-gcp-x86-64")
			return image("rhcos-next"), nil
		},
		look: func(_ context.Context, name string) ([]string, error) {
			if found := server.Instance(name); found != nil {
				return []string{fmt.Sprint(found["id"])}, nil
			}
			return nil, nil
		},
		userData: func(_ context.Context, name string) (string, error) { return server.Metadata(name, "user-data"), nil },
		remove: func(_ context.Context, name string) error {
			server.Remove(compute.Path("instances/" + name))
			return nil
		},
		copy: func(_ context.Context, from, name string) (string, error) {
			err := server.Copy(from, name, map[string]any{"kubernetes-io-cluster-" + clusterID: "owned"})
			return "gce://" + path.Join(compute.Project, compute.Zone, name), err
		},
		left: func(_ context.Context, names []string) ([]string, error) { return ofGCP(server, names), nil },
		deny: denying(guard, "compute.instances.create", "compute.instances.delete"), refusal: "Error 403",
		calls: made(&server.Calls),
	}
}

// ofGCP returns the resources that belong to Machines of these names.
func ofGCP(server *compute.Server, names []string) (found []string) {
	for _, one := range server.Names() {
		for _, name := range names {
			if resource := path.Base(one); resource == name || strings.HasPrefix(resource, name+"-") {
				found = append(found, one)
			}
		}
	}
	return found
}
