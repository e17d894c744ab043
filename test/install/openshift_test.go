package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

const (
	payload    = root + "/install/openshift"
	featureSet = "release.openshift.io/feature-set"
)

// manifest is a file for the cluster-version operator.
type manifest struct {
	file    string
	text    string
	objects map[string]*unstructured.Unstructured
}

// payloadManifests returns the manifests in the order in which they are applied.
func payloadManifests(t *testing.T) []manifest {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(payload, "*.yaml"))
	if err != nil || len(found) < 15 {
		t.Fatalf("there are %d manifests; the test would hold nothing: %v", len(found), err)
	}
	slices.Sort(found)
	var all []manifest
	for _, file := range found {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, manifest{file: file, text: string(content), objects: objectsOf(t, string(content))})
	}
	return all
}

func TestThePayloadIsComplete(t *testing.T) {
	kept := map[string]bool{}
	objects, err := operands.Render(install.FS, operands.Inputs{
		Namespace: namespace, Image: "x", ServiceCA: true, TerminationHandler: true, Monitoring: true, Console: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		kept[one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName()] = true
	}
	var images []string
	for _, m := range payloadManifests(t) {
		images = append(images, regexp.MustCompile(`quay\.io/[a-z/.-]+`).FindAllString(m.text, -1)...)
		for key, one := range m.objects {
			annotations := one.GetAnnotations()
			if annotations["include.release.openshift.io/self-managed-high-availability"] != "true" {
				t.Errorf("%s: the cluster-version operator leaves out the %s, which has no annotation for its clusters",
					m.file, key)
			}
			if one.GetKind() != "Namespace" &&
				!strings.HasPrefix(annotations["capability.openshift.io/name"], "MachineAPI") {
				t.Errorf("%s: the %s is there without the capability MachineAPI", m.file, key)
			}
			if kept[key] {
				t.Errorf("%s: the operator and the cluster-version operator both write the %s", m.file, key)
			}
		}
	}
	content, err := os.ReadFile(filepath.Join(payload, "image-references"))
	if err != nil {
		t.Fatal(err)
	}
	references := struct {
		Spec struct {
			Tags []struct {
				From struct {
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}{}
	if err := yaml.UnmarshalStrict(content, &struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       any    `json:"spec"`
	}{}); err != nil {
		t.Error(err)
	}
	if err := yaml.Unmarshal(content, &references); err != nil {
		t.Fatal(err)
	}
	var replaced []string
	for _, tag := range references.Spec.Tags {
		replaced = append(replaced, tag.From.Name)
	}
	slices.Sort(images)
	if diff := cmp.Diff(slices.Compact(images), replaced); diff != "" {
		t.Errorf("a payload would not replace the images of the manifests (-manifests +image-references):\n%s", diff)
	}
}

func TestThePayloadIsApplied(t *testing.T) {
	long.Test(t)
	c := startOpenShift(t)
	for _, m := range payloadManifests(t) {
		if sets := m.featureSets(); sets != nil && !slices.Contains(sets, "Default") {
			continue
		}
		c.kubectl(t, "apply", "-f", m.file)
	}
	made := &appsv1.Deployment{}
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
		t.Fatal(err)
	}
	operator := &configv1.ClusterOperator{}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKey{Name: "machine-api"}, operator); err != nil {
		t.Error(err)
	}
	c.kubectl(t, "get", "securitycontextconstraints/machine-api-termination-handler")
	c.grantsModulesTheirRights(t)
	for _, set := range []string{"CustomNoUpgrade", "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade"} {
		applied := 0
		for _, m := range payloadManifests(t) {
			if slices.Contains(m.featureSets(), set) {
				applied++
				c.kubectl(t, "apply", "-f", m.file)
			}
		}
		if applied != 2 {
			t.Errorf("the feature set %s has %d CRDs of its own, want those of Machines and MachineSets", set, applied)
		}
	}
}

// featureSets are the clusters' feature sets that get the manifest, or nil for all.
func (m manifest) featureSets() []string {
	for _, one := range m.objects {
		if sets := one.GetAnnotations()[featureSet]; sets != "" {
			return strings.Split(sets, ",")
		}
	}
	return nil
}

// startOpenShift returns a cluster with OpenShift's APIs for the manifests.
func startOpenShift(t *testing.T) *cluster {
	t.Helper()
	c := start(t, withoutCRDs)
	if err := c.plane.InstallClusterConfig(); err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api"))
	_, err := envtest.InstallCRDs(c.plane.Config, envtest.CRDInstallOptions{ErrorIfPathMissing: true, Paths: []string{
		filepath.Join(module, "security", "v1", "zz_generated.crd-manifests"),
		filepath.Join("testdata", "credentialsrequest.yaml"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "create", "namespace", "openshift-cloud-credential-operator")
	return c
}

// grantsModulesTheirRights compares the CredentialsRequests with the rights that modules declare, as the manager does.
func (c *cluster) grantsModulesTheirRights(t *testing.T) {
	t.Helper()
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, one := range loaded {
		needed := one.Spec().Rights
		if len(needed) == 0 {
			continue
		}
		compared++
		reader := rights.New(c.plane.Client, nil)
		secret := types.NamespacedName{Namespace: namespace, Name: one.Name() + "-cloud-credentials"}
		if missing := reader.Missing(t.Context(), needed, secret); len(missing) > 0 {
			t.Errorf("the CredentialsRequest for %s: %s", one.Name(), missing)
		}
		other := []v1alpha1.ModuleRights{{Provider: needed[0].Provider, Actions: []string{"other:Action"}}}
		if missing := reader.Missing(t.Context(), other, secret); len(missing) != 1 {
			t.Errorf("the CredentialsRequest for %s is not found, or grants everything", one.Name())
		}
	}
	if compared < 3 {
		t.Errorf("%d modules have rights, want at least three", compared)
	}
}
