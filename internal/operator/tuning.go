package operator

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// tuned takes over the settings that are written in YAML. Each replaces the default. The API server
// checks what is not checked here.
func tuned(settings *corev1.ConfigMap, in *operands.Inputs) error {
	t, placed := &in.Tuning, &in.Placement
	for _, one := range []struct {
		name, write string
		into        any
	}{
		{settingNodeSelector, `labels, such as ` + controlPlaneRole + `: ""`, &placed.NodeSelector},
		{settingTolerations, "a list, as in a Pod", &placed.Tolerations},
		{settingAffinity, "it as in a Pod", &placed.Affinity},
		{settingPriorityClass, "a name", &placed.PriorityClassName},
		{settingReplicas, "a number", &t.Replicas},
		{settingResources, "requests and limits, as in a container", &t.Resources},
		{settingEnv, "a list of variables, as in a container", &t.Env},
		{settingAccountAnnotations, "annotations", &t.AccountAnnotations},
		{settingProxy, "httpProxy, httpsProxy and noProxy", &in.Proxy},
		{settingWork, "size, and medium or storageClassName", &t.Work},
		{settingProviders, "a list of images, such as - image: registry.example/providers@sha256:...", &t.Providers},
	} {
		if err := read(settings, one.name, one.into); err != nil {
			return fmt.Errorf("invalid %s: write %s in YAML: %w", one.name, one.write, err)
		}
	}
	if _, set := settings.Data[settingProxy]; set {
		proxied(in)
	}
	return checked(in)
}

// proxied completes the proxy of the setting. The API server is reached without it, and engines do not
// inherit the manager's variables.
func proxied(in *operands.Inputs) {
	if in.Proxy == (operands.Proxy{}) {
		return
	}
	in.Proxy.No = strings.TrimPrefix(in.Proxy.No+",$(KUBERNETES_SERVICE_HOST),.svc", ",")
	var flags []string
	for _, one := range in.Proxy.Environment() {
		flags = append(flags, "--engine-env="+one.Name+"="+one.Value)
	}
	in.Arguments = append(flags, in.Arguments...)
}

// read replaces a value by a setting, if there is one.
func read(settings *corev1.ConfigMap, name string, into any) error {
	text, set := settings.Data[name]
	if !set {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero() // decoding would merge
	return yaml.UnmarshalStrict([]byte(cmp.Or(strings.TrimSpace(text), "null")), into)
}

// checked returns what the API server would not refuse, or not as plainly.
func checked(in *operands.Inputs) error {
	t := in.Tuning
	if t.Replicas != nil && *t.Replicas < 1 {
		return fmt.Errorf("%s is %d; set it to 1 or more", settingReplicas, *t.Replicas)
	}
	for _, one := range t.Env {
		if strings.HasPrefix(one.Name, "POD_") {
			return fmt.Errorf("%s has %s, which the operator sets; remove it", settingEnv, one.Name)
		}
	}
	if err := t.Work.Validate(); err != nil {
		return fmt.Errorf("%s: %w", settingWork, err)
	}
	for _, one := range t.Providers {
		if err := one.Validate(); err != nil {
			return fmt.Errorf("%s: %w", settingProviders, err)
		}
	}
	if len(t.Providers) > 0 && slices.Contains(in.Arguments, "--runs-in=jobs") {
		return fmt.Errorf("%s cannot be combined with --runs-in=jobs in %s; add the providers to the image instead: "+
			"docs/image.md", settingProviders, settingArguments)
	}
	return nil
}
