package operands

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/ptr"
)

// complete adds what an object's manifest leaves to the inputs.
func (in Inputs) complete(object *unstructured.Unstructured) error {
	annotate(object, OwnedAnnotation, "")
	label(object, ManagedByLabel, ManagedBy)
	switch {
	case object.GetKind() == "Deployment":
		return in.deployment(object)
	case object.GetKind() == "DaemonSet":
		return in.daemonSet(object)
	case object.GetName() == egressPolicy:
		return in.egress(object)
	case object.GetKind() == "ServiceAccount" && object.GetName() == Deployment:
		in.Tuning.annotate(object)
	case object.GetKind() == "ServiceMonitor":
		return in.serviceMonitor(object)
	case object.GetKind() == "Service" && in.ServiceCA && object.GetName() == Deployment:
		annotate(object, "service.beta.openshift.io/serving-cert-secret-name", metricsSecret)
		return addControllerPorts(object)
	case object.GetKind() == "Service" && in.ServiceCA && object.GetName() == "machine-api-operator-webhook":
		annotate(object, "service.beta.openshift.io/serving-cert-secret-name", webhookSecret)
	case isWebhook(object) && in.ServiceCA:
		annotate(object, "service.beta.openshift.io/inject-cabundle", "true")
	}
	return nil
}

// move replaces the manifests' namespace by the operator's in every field with that value.
func (in Inputs) move(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case string:
			if value == Namespace {
				fields[name] = in.Namespace
			}
		case map[string]any:
			in.move(value)
		case []any:
			for _, element := range value {
				if inner, ok := element.(map[string]any); ok {
					in.move(inner)
				}
			}
		}
	}
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}

func label(object *unstructured.Unstructured, name, value string) {
	set := maps.Clone(object.GetLabels())
	if set == nil {
		set = map[string]string{}
	}
	set[name] = value
	object.SetLabels(set)
}

// deployment completes a Deployment and its Pods.
func (in Inputs) deployment(object *unstructured.Unstructured) error {
	made := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, made, true); err != nil {
		return err
	}
	pod := &made.Spec.Template
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if at < 0 {
		return fmt.Errorf("it has no container %s", container)
	}
	main := &pod.Spec.Containers[at]
	if main.Image != placeholder {
		return fmt.Errorf("the image of container %s is %q, not the placeholder %q", container, main.Image, placeholder)
	}
	main.Image = in.Image
	main.Args = append(main.Args, in.arguments()...)
	main.Env = append(main.Env, in.Proxy.Environment()...)
	if in.SingleReplica {
		one := int32(1)
		made.Spec.Replicas = &one
	}
	if in.ServiceCA {
		mount(pod, main, corev1.Volume{Name: "webhook-cert",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: webhookSecret}}}, webhookCerts)
		mount(pod, main, corev1.Volume{Name: "metrics-cert",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: metricsSecret}}}, metricsCerts)
		main.Ports = append(main.Ports, controllerPorts...)
	}
	mountKeys(pod, main, "module-keys", in.ModuleKeys, moduleKeyMount)
	mountKeys(pod, main, "state-keys", in.StateKeys, stateKeyMount)
	in.Placement.set(pod)
	annotations := map[string]string{VersionAnnotation: in.Version}
	if in.TrustedCA != "" {
		in.trust(pod, main)
		annotations[caHash] = in.TrustedCA
	}
	if err := in.Tuning.set(made, main); err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return err
	}
	object.Object = fields
	for _, unset := range [][]string{{"status"}, {"metadata", "creationTimestamp"},
		{"spec", "template", "metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(object.Object, unset...)
	}
	for name, value := range annotations {
		annotate(object, name, value)
	}
	return nil
}

// trust mounts the trusted CA.
func (in Inputs) trust(pod *corev1.PodTemplateSpec, main *corev1.Container) {
	mount(pod, main, corev1.Volume{Name: "trusted-ca",
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: TrustedCA},
			Items:                []corev1.KeyToPath{{Key: TrustedCAKey, Path: caFile}},
		}}}, caMount)
	main.Env = append(main.Env, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: caMount + "/" + caFile})
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, caHash, in.TrustedCA) // a change rolls the Pods out
}

// daemonSet completes the termination handler. It calls the metadata service of its host, which
// needs no proxy.
func (in Inputs) daemonSet(object *unstructured.Unstructured) error {
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("it has %d containers, not one", len(containers))
	}
	only, ok := containers[0].(map[string]any)
	if !ok || only["image"] != placeholder {
		return fmt.Errorf("the image of its container is not the placeholder %q", placeholder)
	}
	only["image"] = in.Image
	return unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")
}

// controllerPorts are where OpenShift's monitors look for the metrics of each controller, by a label
// of the Service. The names are those of machine-api-operator's.
var controllerPorts = []corev1.ContainerPort{
	{Name: "machine-mtrc", ContainerPort: 8441},
	{Name: "machineset-mtrc", ContainerPort: 8442},
	{Name: "mhc-mtrc", ContainerPort: 8444},
}

// addControllerPorts adds controllerPorts to the Service of the metrics.
func addControllerPorts(service *unstructured.Unstructured) error {
	label(service, "k8s-app", "controller")
	ports, _, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if err != nil {
		return err
	}
	for _, one := range controllerPorts {
		ports = append(ports, map[string]any{"name": one.Name, "port": int64(one.ContainerPort), "targetPort": one.Name})
	}
	return unstructured.SetNestedSlice(service.Object, ports, "spec", "ports")
}

// serviceMonitor completes how Prometheus verifies an endpoint: by OpenShift's service CA, else by
// the authority of the webhooks' certificate. Without webhooks there is none.
func (in Inputs) serviceMonitor(object *unstructured.Unstructured) error {
	endpoints, _, err := unstructured.NestedSlice(object.Object, "spec", "endpoints")
	if err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		fields, ok := endpoint.(map[string]any)
		if !ok {
			return errors.New("an endpoint is no object")
		}
		name := object.GetName() + "." + in.Namespace + ".svc"
		switch {
		case in.ServiceCA && !in.sets("--metrics-cert-dir"):
			fields["tlsConfig"] = map[string]any{"serverName": name, "caFile": serviceCAFile}
		case in.withoutAuthority():
			fields["tlsConfig"] = map[string]any{"insecureSkipVerify": true}
		default:
			if err := unstructured.SetNestedField(fields, name, "tlsConfig", "serverName"); err != nil {
				return err
			}
		}
	}
	return unstructured.SetNestedSlice(object.Object, endpoints, "spec", "endpoints")
}

// withoutAuthority reports whether the manager keeps no certificate of its own, or the metrics have
// another.
func (in Inputs) withoutAuthority() bool {
	return in.WithoutWebhooks || in.sets("--webhook-enabled", "--webhook-cert-dir", "--metrics-cert-dir")
}

// sets reports whether the settings have one of these flags.
func (in Inputs) sets(flags ...string) bool {
	return slices.ContainsFunc(in.Arguments, func(argument string) bool {
		name, _, _ := strings.Cut(argument, "=")
		return slices.Contains(flags, name)
	})
}

// arguments returns the flags that the controllers get besides those of the manifest.
func (in Inputs) arguments() []string {
	var flags []string
	if in.WithoutHealthChecks {
		flags = append(flags, "--controllers=*,-machinehealthcheck")
	}
	if len(in.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+cliflag.NewMapStringBool(&in.FeatureGates).String())
	}
	if in.WithoutWebhooks {
		flags = append(flags, "--webhook-enabled=false")
	} else if in.ServiceCA {
		flags = append(flags, "--webhook-cert-dir="+webhookCerts)
	}
	if in.ServiceCA {
		flags = append(flags, "--metrics-cert-dir="+metricsCerts, "--metrics-controller-ports")
	}
	if in.TLS.MinVersion != "" {
		flags = append(flags, "--tls-min-version="+in.TLS.MinVersion)
	}
	if len(in.TLS.CipherSuites) > 0 {
		flags = append(flags, "--tls-cipher-suites="+strings.Join(in.TLS.CipherSuites, ","))
	}
	if in.ModuleKeys != "" {
		flags = append(flags, "--module-key-file="+moduleKeyMount)
	}
	if in.StateKeys != "" {
		flags = append(flags, "--state-key-file="+stateKeyMount)
	}
	if len(in.Tuning.Providers) > 0 {
		flags = append(flags, "--provider-mirror="+providersMount+"/mirror")
	}
	return append(flags, in.Arguments...)
}

// Environment returns the variables that programs read a proxy from.
func (p Proxy) Environment() []corev1.EnvVar {
	var set []corev1.EnvVar
	for _, one := range []corev1.EnvVar{{Name: "HTTP_PROXY", Value: p.HTTP}, {Name: "HTTPS_PROXY", Value: p.HTTPS},
		{Name: "NO_PROXY", Value: p.No}} {
		if one.Value != "" {
			set = append(set, one)
		}
	}
	return set
}

// mountKeys makes the Secrets Store CSI driver mount the keys of a SecretProviderClass, if there is
// one.
func mountKeys(pod *corev1.PodTemplateSpec, to *corev1.Container, name, class, folder string) {
	if class == "" {
		return
	}
	mount(pod, to, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: keysDriver, ReadOnly: ptr.To(true), VolumeAttributes: map[string]string{"secretProviderClass": class},
	}}}, folder)
}

// mount adds a read-only volume to a container.
func mount(pod *corev1.PodTemplateSpec, to *corev1.Container, volume corev1.Volume, folder string) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	to.VolumeMounts = append(to.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: folder, ReadOnly: true})
}
