//go:build image

package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// deployment returns the Deployment that the image is for.
func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "install", "controllers", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// environment is that of the image, with what a container runtime adds.
func environment(more ...string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/var/lib/machine-iac"}, more...)
}

// volumes are those that the Deployment mounts: memory that the user may write to, and folders that have nothing here.
func volumes(t *testing.T, pod corev1.PodSpec) []volume {
	t.Helper()
	memories := map[string]bool{}
	for _, v := range pod.Volumes {
		memories[v.Name] = v.EmptyDir != nil
	}
	var out []volume
	for _, m := range pod.Containers[0].VolumeMounts {
		out = append(out, volume{From: memory(t), To: m.MountPath, ReadOnly: !memories[m.Name]})
	}
	return out
}

func TestPrograms(t *testing.T) {
	needRoot(t)
	b := read(t)
	folder := b.unpack(t)
	pod := deployment(t).Spec.Template.Spec
	in := func(t *testing.T, command ...string) box {
		return box{Root: folder, Command: command, Environment: environment(), Folders: volumes(t, pod), offline: true}
	}

	t.Run("each says its version", func(t *testing.T) {
		programs, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range programs {
			name := filepath.Base(filepath.Dir(source))
			if name == "kubectl-machine" {
				continue
			}
			if out, code := in(t, "/usr/bin/"+name, "--version").run(t); code != 0 ||
				strings.TrimSpace(out) != b.version {
				t.Errorf("%s --version exits with %d and prints %q; want %q", name, code, out, b.version)
			}
		}
	})

	t.Run("the manager without a cluster says so", func(t *testing.T) {
		out, code := in(t, append([]string{"/usr/bin/machine-controllers", "--namespace=openshift-machine-api"},
			pod.Containers[0].Args...)...).run(t)
		if code != 1 || !strings.Contains(out, "finding the API server") {
			t.Errorf("it exits with %d and prints %s", code, out)
		}
	})

	t.Run("nothing but the mounted folders can be written to", func(t *testing.T) {
		for folder, writable := range map[string]bool{
			"/tmp": true, "/var/lib/machine-iac": true, "/": false, "/usr/bin": false, "/etc": false,
			"/usr/share/machine-iac": false,
		} {
			out, code := in(t, "/usr/bin/tofu", "-chdir="+folder, "workspace", "new", "-no-color", "probe").run(t)
			if writable != (code == 0) || !writable && !strings.Contains(out, "read-only file system") {
				t.Errorf("writing to %s exits with %d: %s", folder, code, out)
			}
		}
	})

	t.Run("a plan needs no network", func(t *testing.T) {
		work := memory(t)
		copyModule(t, work)
		plan := in(t)
		plan.Folders = append(plan.Folders, volume{From: work, To: "/var/lib/machine-iac"})
		plan.Environment = environment("TF_CLI_CONFIG_FILE=/var/lib/machine-iac/mirror.tfrc",
			"KUBE_HOST=https://192.0.2.1", "KUBE_LOAD_CONFIG_FILE=false", "CHECKPOINT_DISABLE=1")
		plan.Command = []string{"/usr/bin/tofu", "-chdir=/var/lib/machine-iac", "init", "-input=false", "-no-color"}
		if out, code := plan.run(t); code != 0 {
			t.Fatalf("init exits with %d: %s", code, out)
		}
		plan.Command = []string{"/usr/bin/tofu", "-chdir=/var/lib/machine-iac", "plan", "-input=false", "-no-color"}
		if out, code := plan.run(t); code != 0 || !strings.Contains(out, "Plan: 2 to add, 0 to change, 0 to destroy.") {
			t.Errorf("plan exits with %d: %s", code, out)
		}
	})
}

// copyModule copies the module kubemark into a folder, with inputs and where its provider is.
func copyModule(t *testing.T, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "modules", "kubemark", "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the module: %v, %v", files, err)
	}
	content := map[string][]byte{
		"mirror.tfrc": []byte("provider_installation {\n  filesystem_mirror {\n" +
			"    path = \"/usr/share/machine-iac/mirror\"\n  }\n}\n"),
		"terraform.tfvars.json": []byte(
			`{"user_data": "", "provider_spec": {"credentialsSecret": {"name": "kubemark-credentials"}},
			"machine": {"name": "a", "namespace": "b", "uid": "634664f4-5da5-472d-b943-2f002c960e16", "cluster_id": "c", "labels": {}}}`),
	}
	for _, name := range files {
		if content[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
