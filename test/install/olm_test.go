package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

const (
	bundle  = root + "/install/olm"
	account = "machine-api-operator"
)

// serviceVersion is the part of a ClusterServiceVersion that the Operator Lifecycle Manager installs.
type serviceVersion struct {
	Spec struct {
		Install struct {
			Spec struct {
				Deployments []struct {
					Name string                `json:"name"`
					Spec appsv1.DeploymentSpec `json:"spec"`
				} `json:"deployments"`
				Permissions        []permission `json:"permissions"`
				ClusterPermissions []permission `json:"clusterPermissions"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

func TestTheBundleIsValid(t *testing.T) {
	long.Test(t)
	program := filepath.Join(root, "bin", "operator-verify")
	out, err := exec.CommandContext(t.Context(), program, "manifests", bundle,
		"--object_validate", "--operatorhub_validate").CombinedOutput()
	if err != nil || strings.Contains(string(out), "level=error") {
		t.Errorf("%v\n%s", err, out)
	}
	// The validation detects defects.
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(bundle)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(broken, "manifests", "machinesets.crd.yaml")); err != nil {
		t.Fatal(err)
	}
	out, _ = exec.CommandContext(t.Context(), program, "manifests", broken).CombinedOutput()
	if !strings.Contains(string(out), "level=error") || !strings.Contains(string(out), "Kind=MachineSet") {
		t.Errorf("a bundle without a CRD that it owns is called valid:\n%s", out)
	}
}

// TestTheBundleInstallsTheOperator installs the bundle as the Operator Lifecycle Manager does.
func TestTheBundleInstallsTheOperator(t *testing.T) {
	long.Test(t)
	c := start(t, withoutCRDs)
	c.kubectl(t, "create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml"))
	files, err := filepath.Glob(filepath.Join(bundle, "manifests", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("the bundle has %d manifests: %v", len(files), err)
	}
	version := serviceVersion{}
	for _, file := range files {
		if !strings.HasSuffix(file, ".clusterserviceversion.yaml") {
			c.kubectl(t, "apply", "-n", namespace, "-f", file)
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, &version); err != nil {
			t.Fatal(err)
		}
	}
	spec := version.Spec.Install.Spec
	meta := metav1.ObjectMeta{Namespace: namespace, Name: account}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}}
	role, cluster := &rbacv1.Role{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-the-bundle"}}
	for _, one := range slices.Concat(spec.Permissions, spec.ClusterPermissions) {
		if one.ServiceAccountName != account {
			t.Errorf("rights are for the ServiceAccount %s", one.ServiceAccountName)
		}
	}
	for _, one := range spec.Permissions {
		role.Rules = append(role.Rules, one.Rules...)
	}
	for _, one := range spec.ClusterPermissions {
		cluster.Rules = append(cluster.Rules, one.Rules...)
	}
	err = c.plane.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, role, cluster,
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster.ObjectMeta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}})
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Deployments) != 1 || spec.Deployments[0].Name != operatorKey.Name {
		t.Fatalf("the bundle has the Deployments %+v", spec.Deployments)
	}
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operatorKey.Name},
		Spec: spec.Deployments[0].Spec}
	if err := c.plane.Client.Create(t.Context(), made); err != nil {
		t.Error(err)
	}
	if got := made.Spec.Template.Spec.ServiceAccountName; got != account {
		t.Errorf("its Pods run as %s", got)
	}
	c.mayWhatKustomizeGrants(t)
}

// mayWhatKustomizeGrants checks that the operator has all rights from install/kubernetes.
func (c *cluster) mayWhatKustomizeGrants(t *testing.T) {
	t.Helper()
	asked := 0
	for _, one := range objectsOf(t,
		run(t, filepath.Join(root, "bin", "kubectl"), "kustomize", filepath.Join(root, "install", "kubernetes"))) {
		if one.GetKind() != "Role" && one.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		convert(t, one, role)
		for _, attributes := range everyRight(role.Rules) {
			asked++
			attributes.Namespace = one.GetNamespace()
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + namespace + ":" + account, ResourceAttributes: &attributes,
			}}
			if err := c.plane.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if !review.Status.Allowed {
				t.Errorf("the operator may not %+v", attributes)
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d rights were asked for, want more than a hundred", asked)
	}
}

// everyRight expands rules into single rights.
func everyRight(rules []rbacv1.PolicyRule) (all []authorizationv1.ResourceAttributes) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, authorizationv1.ResourceAttributes{
							Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: name,
						})
					}
				}
			}
		}
	}
	return all
}
