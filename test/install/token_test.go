package install_test

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// tokenFolder is where clients look for the service account's token.
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

func TestTokensAreShortLivedAndOfOneContainer(t *testing.T) {
	for _, file := range []string{
		"controllers/deployment.yaml", "kubernetes/operator/deployment.yaml",
		"gardener/control/machine-controller-manager.yaml",
		"gardener/control/machine-controller-manager-provider-iac.yaml",
	} {
		raw, err := os.ReadFile(filepath.Join(root, "install", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		var deployment appsv1.Deployment
		if err := yaml.UnmarshalStrict(raw, &deployment); err != nil {
			t.Fatal(err)
		}
		checkToken(t, file, deployment.Spec.Template.Spec)
	}
}

func checkToken(t *testing.T, file string, pod corev1.PodSpec) {
	t.Helper()
	if ptr.Deref(pod.AutomountServiceAccountToken, true) {
		t.Errorf("%s: the token is mounted into every container", file)
	}
	var tokens []string
	for _, container := range pod.Containers {
		for _, mount := range container.VolumeMounts {
			if mount.MountPath == tokenFolder && mount.ReadOnly {
				tokens = append(tokens, mount.Name)
			}
		}
	}
	if len(tokens) != 1 {
		t.Fatalf("%s: the token is mounted %d times, want once", file, len(tokens))
	}
	for _, volume := range pod.Volumes {
		if volume.Name != tokens[0] {
			continue
		}
		sources := volume.Projected.Sources
		if len(sources) != 3 || sources[1].ConfigMap == nil || sources[1].ConfigMap.Name != "kube-root-ca.crt" ||
			sources[2].DownwardAPI == nil {
			t.Fatalf("%s: want the token, the API server's authority and the namespace, got %+v", file, sources)
		}
		token := sources[0].ServiceAccountToken
		// API servers extend the default of 3607 seconds to a year.
		if token == nil || token.Path != "token" || token.Audience != "" ||
			ptr.Deref(token.ExpirationSeconds, 0) != 3600 {
			t.Errorf("%s: the token is %+v", file, token)
		}
		return
	}
	t.Errorf("%s: there is no volume %s", file, tokens[0])
}
