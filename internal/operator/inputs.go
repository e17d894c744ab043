package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// Optional ConfigMaps in the operator's namespace.
const (
	// ImagesName contains the images of a release as JSON, as for machine-api-operator.
	ImagesName = "machine-api-operator-images"
	imagesKey  = "images.json"
	// SettingsName contains the administrator's settings.
	SettingsName = "machine-api-operator-config"
)

// Keys of the ConfigMap [SettingsName].
const (
	settingPlatform   = "platform"   // where the cluster is, as an Infrastructure's platformStatus.type; counts where there is no Infrastructure
	settingWebhooks   = "webhooks"   // Enabled, which is the default, or Disabled
	settingArguments  = "arguments"  // further flags of machine-controllers, one a line
	settingEgress     = "egress"     // what the controllers reach, one network a line; everything without
	settingModuleKeys = "moduleKeys" // the SecretProviderClass with keys for stored modules; none without
	settingStateKeys  = "stateKeys"  // the same with keys for states

	// Those of the controllers and their Pods, in YAML.
	settingNodeSelector       = "nodeSelector"
	settingTolerations        = "tolerations"
	settingAffinity           = "affinity"
	settingPriorityClass      = "priorityClassName"
	settingReplicas           = "replicas"
	settingResources          = "resources"
	settingEnv                = "env"
	settingAccountAnnotations = "serviceAccountAnnotations"
	settingProxy              = "proxy"
	settingWork               = "work"
	settingProviders          = "providers"
)

var allSettings = []string{settingPlatform, settingWebhooks, settingArguments, settingEgress, settingModuleKeys,
	settingStateKeys, settingNodeSelector, settingTolerations, settingAffinity, settingPriorityClass, settingReplicas,
	settingResources, settingEnv, settingAccountAnnotations, settingProxy, settingWork, settingProviders}

// cluster is the name of OpenShift's configuration objects.
const clusterName = "cluster"

// inputs reads what the operands depend on.
func (r *Reconciler) inputs(ctx context.Context) (operands.Inputs, error) {
	in := operands.Inputs{Namespace: r.options.Namespace, Version: r.options.Version}
	settings := &corev1.ConfigMap{}
	if _, err := r.read(ctx, r.own(SettingsName), settings); err != nil {
		return in, err
	}
	err := choose(settings, &in)
	if err == nil {
		err = r.validate(ctx, in.Arguments)
	}
	if err != nil {
		return in, fmt.Errorf("ConfigMap %s/%s: %w", r.options.Namespace, SettingsName, err)
	}
	if in.Monitoring = serves(r.live, prometheusRule); in.Monitoring {
		var err error
		if in.Console, err = r.read(ctx, client.ObjectKey{Name: operands.ConsoleNamespace}, &corev1.Namespace{}); err != nil {
			return in, err
		}
	}
	for _, step := range []func(context.Context, *operands.Inputs, *corev1.ConfigMap) error{
		r.image, r.infrastructure, r.proxy, r.tune, r.authorities, r.tls, r.features,
	} {
		if err := step(ctx, &in, settings); err != nil {
			return in, err
		}
	}
	return in, nil
}

// validateTimeout is much longer than the manager takes to read its flags.
const validateTimeout = time.Minute

// validate has the manager check the flags of the settings, which would end each new Pod if they were
// wrong.
func (r *Reconciler) validate(ctx context.Context, arguments []string) error {
	if r.options.Manager == "" || slices.Equal(arguments, r.valid) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, validateTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, r.options.Manager, append([]string{"validate"}, arguments...)...)
	command.Env = []string{"POD_NAMESPACE=validate", "POD_NAME=validate", "POD_IP=127.0.0.1"} // as its Pod has
	out, err := command.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == 1 {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %s", settingArguments, strings.TrimPrefix(lines[len(lines)-1], "machine-controllers: "))
	}
	if err != nil {
		return fmt.Errorf("validating %s: %w", settingArguments, err)
	}
	r.valid = slices.Clone(arguments)
	return nil
}

// read gets an optional object of an API that the cluster may not have.
func (r *Reconciler) read(ctx context.Context, key client.ObjectKey, into client.Object) (found bool, err error) {
	err = r.live.Get(ctx, key, into)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	}
	return false, fmt.Errorf("reading %T %s: %w", into, strings.TrimPrefix(key.String(), "/"), err)
}

func (r *Reconciler) own(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.options.Namespace, Name: name}
}

// choose takes over an administrator's settings.
func choose(settings *corev1.ConfigMap, in *operands.Inputs) error {
	for key := range settings.Data {
		if !slices.Contains(allSettings, key) {
			last := len(allSettings) - 1
			return fmt.Errorf("%q is no setting; use %s or %s", key, strings.Join(allSettings[:last], ", "), allSettings[last])
		}
	}
	switch value := settings.Data[settingWebhooks]; value {
	case "", "Enabled":
	case "Disabled":
		in.WithoutWebhooks = true
	default:
		return fmt.Errorf("%s is %q; set it to Enabled or Disabled", settingWebhooks, value)
	}
	for line := range strings.Lines(settings.Data[settingArguments]) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		} else if !strings.HasPrefix(line, "--") {
			return fmt.Errorf("%s has the line %q, which is no flag; write one flag a line, such as --max-concurrent-runs=16",
				settingArguments, line)
		}
		in.Arguments = append(in.Arguments, line)
	}
	for line := range strings.Lines(settings.Data[settingEgress]) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		to, err := operands.ParseDestination(line)
		if err != nil {
			return fmt.Errorf("%s: %w", settingEgress, err)
		}
		in.Egress = append(in.Egress, to)
	}
	for setting, class := range map[string]*string{settingModuleKeys: &in.ModuleKeys, settingStateKeys: &in.StateKeys} {
		*class = strings.TrimSpace(settings.Data[setting])
		if faults := validation.IsDNS1123Subdomain(*class); *class != "" && len(faults) > 0 {
			return fmt.Errorf("%s is %q, which cannot be the name of a SecretProviderClass: %s", setting, *class, faults[0])
		}
	}
	return nil
}

// unconfined returns the last flag that lets engines run unconfined, or "".
func unconfined(arguments []string) string {
	for _, argument := range slices.Backward(arguments) {
		if mode, is := strings.CutPrefix(argument, "--sandbox="); is && mode != "required" {
			return argument
		} else if is {
			return ""
		}
	}
	return ""
}

// image returns the image of the controllers: the release's, or else the operator's own, since one
// image has both programs.
func (r *Reconciler) image(ctx context.Context, in *operands.Inputs, _ *corev1.ConfigMap) error {
	images := &corev1.ConfigMap{}
	found, err := r.read(ctx, r.own(ImagesName), images)
	if err != nil {
		return err
	}
	if found {
		if in.Image, err = ImageOf([]byte(images.Data[imagesKey])); err != nil {
			return fmt.Errorf("ConfigMap %s/%s: %s %w; or delete the ConfigMap", r.options.Namespace, ImagesName, imagesKey,
				err)
		}
		return nil
	}
	if in.Image = r.options.Image; in.Image != "" {
		return nil
	}
	pod := &corev1.Pod{}
	if _, err := r.read(ctx, r.own(r.options.PodName), pod); err != nil {
		return err
	}
	for _, container := range pod.Spec.Containers {
		in.Image = container.Image
	}
	if in.Image == "" {
		return errors.New("no image for the controllers: set --image, or POD_NAME to the name of the Pod that this program runs in")
	}
	return nil
}

// ImageOf returns the operator's image, which the controllers run too, from a release's images in
// JSON.
func ImageOf(images []byte) (string, error) {
	named := struct {
		Operator string `json:"machineAPIOperator"`
	}{}
	if err := json.Unmarshal(images, &named); err != nil || named.Operator == "" {
		return "", errors.New("has no image of machineAPIOperator; set it to JSON with that key")
	}
	return named.Operator, nil
}

// infrastructure reads the platform and the size of the control plane.
func (r *Reconciler) infrastructure(ctx context.Context, in *operands.Inputs, settings *corev1.ConfigMap) error {
	found := &configv1.Infrastructure{}
	there, err := r.read(ctx, client.ObjectKey{Name: clusterName}, found)
	if err != nil {
		return err
	}
	platform := found.Status.Platform //nolint:staticcheck // what clusters had before platformStatus
	if found.Status.PlatformStatus != nil {
		platform = found.Status.PlatformStatus.Type
	}
	chosen := settings.Data[settingPlatform]
	if chosen == "" && !there {
		if chosen, err = r.installedPlatform(ctx); err != nil {
			return err
		}
	}
	if chosen != "" && !there {
		platform = configv1.PlatformType(chosen)
		in.Arguments = append([]string{"--cluster-fact=platform=" + chosen}, in.Arguments...)
	}
	in.TerminationHandler = slices.Contains([]configv1.PlatformType{configv1.AWSPlatformType, configv1.AzurePlatformType,
		configv1.GCPPlatformType}, platform)
	in.Policies = serves(r.live, admissionPolicy)
	in.FailureDomains = in.Policies && platform == configv1.VSpherePlatformType && serves(r.live, controlPlaneMachineSet)
	in.SingleReplica = singleNode(found)
	// An Infrastructure alone is not OpenShift: manuals have people create one on other clusters.
	if in.ServiceCA = there && serves(r.live, serviceCA); in.ServiceCA {
		// The installer's Machines are there before the operator. The administrator's own flags come
		// later and win.
		in.Arguments = append([]string{"--adoption=OnRequest"}, in.Arguments...)
		in.Placement = placementOn(found.Status.ControlPlaneTopology)
	}
	return nil
}

func (r *Reconciler) proxy(ctx context.Context, in *operands.Inputs, _ *corev1.ConfigMap) error {
	found := &configv1.Proxy{}
	if _, err := r.read(ctx, client.ObjectKey{Name: clusterName}, found); err != nil {
		return err
	}
	in.Proxy = operands.Proxy{HTTP: found.Status.HTTPProxy, HTTPS: found.Status.HTTPSProxy, No: found.Status.NoProxy}
	return nil
}

// authorities hashes the trusted CA, so that a change of it rolls the controllers out.
func (r *Reconciler) authorities(ctx context.Context, in *operands.Inputs, _ *corev1.ConfigMap) error {
	found := &corev1.ConfigMap{}
	if _, err := r.read(ctx, r.own(operands.TrustedCA), found); err != nil {
		return err
	}
	if bundle := found.Data[operands.TrustedCAKey]; bundle != "" {
		sum := sha256.Sum256([]byte(bundle))
		in.TrustedCA = hex.EncodeToString(sum[:])
	}
	return nil
}

func (r *Reconciler) tls(ctx context.Context, in *operands.Inputs, _ *corev1.ConfigMap) error {
	found := &configv1.APIServer{}
	there, err := r.read(ctx, client.ObjectKey{Name: clusterName}, found)
	if err != nil || !there {
		return err
	}
	in.TLS = tlsOf(found.Spec)
	return nil
}

// followedGates are OpenShift's feature gates of single fields, which the controllers follow.
var followedGates = []configv1.FeatureGateName{features.FeatureGateAWSDedicatedHosts,
	features.FeatureGateVSphereHostVMGroupZonal}

// features reads which features are enabled in the operator's version. Until the cluster knows that
// version, they are off, and the controllers get no gates, so that they reject no field.
func (r *Reconciler) features(ctx context.Context, in *operands.Inputs, _ *corev1.ConfigMap) error {
	found := &configv1.FeatureGate{}
	if _, err := r.read(ctx, client.ObjectKey{Name: clusterName}, found); err != nil {
		return err
	}
	at := slices.IndexFunc(found.Status.FeatureGates,
		func(one configv1.FeatureGateDetails) bool { return one.Version == r.options.Version })
	if at < 0 {
		in.FailureDomains = false
		return nil
	}
	enabled := func(gate configv1.FeatureGateName) bool {
		return slices.ContainsFunc(found.Status.FeatureGates[at].Enabled,
			func(on configv1.FeatureGateAttributes) bool { return on.Name == gate })
	}
	in.WithoutHealthChecks = enabled(features.FeatureGateMachineAPIOperatorDisableMachineHealthCheckController)
	in.FeatureGates = map[string]bool{}
	for _, gate := range followedGates {
		in.FeatureGates[string(gate)] = enabled(gate)
	}
	in.FailureDomains = in.FailureDomains && enabled(features.FeatureGateVSphereMultiVCenterDay2)
	return nil
}
