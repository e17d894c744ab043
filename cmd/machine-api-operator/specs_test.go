package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestSpecsOfOpenShift has a test by the name of each spec in which
// openshift/cluster-api-actuator-pkg tests machine-api-operator on a cluster: the same acts, and
// the same expectations.
func TestSpecsOfOpenShift(t *testing.T) {
	long.Test(t)
	i := installed(t, func(i *installation) {
		if err := i.plane.InstallClusterConfig(); err != nil {
			i.Fatal(err)
		}
		err := i.plane.Create(i.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.InfrastructureStatus{
			InfrastructureName: "demo-x7k2p", ControlPlaneTopology: configv1.HighlyAvailableTopologyMode, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			PlatformStatus: &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		}})
		if err != nil {
			i.Fatal(err)
		}
		i.controlsDeployments()
	})
	for _, spec := range []struct {
		name string
		run  func(*installation)
	}{
		{"Machine API operator deployment should be available", func(i *installation) { i.isAvailable("machine-api-operator") }},
		{"Machine API operator deployment should reconcile controllers deployment", (*installation).reconcilesTheDeployment},
		{"Machine API operator deployment should maintains deployment spec", (*installation).maintainsTheDeployment},
		{"Machine API operator deployment should reconcile mutating webhook configuration", func(i *installation) { i.isSynced(newMutating()) }},
		{"Machine API operator deployment should reconcile validating webhook configuration", func(i *installation) { i.isSynced(newValidating()) }},
		{"Machine API operator deployment should recover after validating webhook configuration deletion", func(i *installation) { i.recoversFromDeletion(newValidating()) }},
		{"Machine API operator deployment should recover after mutating webhook configuration deletion", func(i *installation) { i.recoversFromDeletion(newMutating()) }},
		{
			"Machine API operator deployment should maintains spec after mutating webhook configuration change and preserve caBundle",
			func(i *installation) { i.maintainsWebhooks(newMutating()) },
		},
		{
			"Machine API operator deployment should maintains spec after validating webhook configuration change and preserve caBundle",
			func(i *installation) { i.maintainsWebhooks(newValidating()) },
		},
		{"Machine API cluster operator status should be available", func(i *installation) {
			i.conditionsBecome("Available=True/AsExpected Degraded=False/AsExpected Progressing=False/AsExpected Upgradeable=True/AsExpected")
		}},
	} {
		t.Run(spec.name, func(t *testing.T) { spec.run(i.with(t)) })
	}
}

// controlsDeployments plays the controller of Deployments until the test ends: every Deployment is
// rolled out as soon as it changes.
func (i *installation) controlsDeployments() {
	ctx, stop := context.WithCancel(i.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			i.completeRollouts(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	i.Cleanup(func() {
		stop()
		<-done
	})
}

func (i *installation) completeRollouts(ctx context.Context) {
	list := &appsv1.DeploymentList{}
	if i.plane.Client.List(ctx, list, client.InNamespace(namespace)) != nil {
		return // with the next pass
	}
	for n := range list.Items {
		one := &list.Items[n]
		if one.Status.ObservedGeneration == one.Generation {
			continue
		}
		complete(one)
		_ = i.plane.Client.Status().Update(ctx, one) // a conflict ends with the next pass
	}
}

func (i *installation) isAvailable(name string) {
	i.Helper()
	i.eventually("the Deployment "+name+" is available", func() (bool, error) {
		found := &appsv1.Deployment{}
		err := i.plane.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)
		return found.Status.AvailableReplicas > 0, err
	})
}

// hasSpec waits until the controllers' Deployment has the very spec again.
func (i *installation) hasSpec(want appsv1.DeploymentSpec) {
	i.Helper()
	i.eventually("the Deployment has its spec", func() (bool, error) {
		found := &appsv1.Deployment{}
		err := i.plane.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, found)
		return equality.Semantic.DeepEqual(found.Spec, want), err
	})
}

func (i *installation) controllers() *appsv1.Deployment {
	i.Helper()
	i.isAvailable(operands.Deployment)
	found := &appsv1.Deployment{}
	if err := i.plane.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, found); err != nil {
		i.Fatal(err)
	}
	return found
}

func (i *installation) reconcilesTheDeployment() {
	initial := i.controllers()
	if err := i.plane.Client.Delete(i.Context(), initial); err != nil {
		i.Fatal(err)
	}
	i.eventually("there is another Deployment", func() (bool, error) {
		found := &appsv1.Deployment{}
		err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(initial), found)
		return found.UID != initial.UID, err
	})
	i.isAvailable(operands.Deployment)
	i.hasSpec(initial.Spec)
}

func (i *installation) maintainsTheDeployment() {
	initial := i.controllers()
	changed := initial.DeepCopy()
	changed.Spec.Replicas = ptr.To[int32](0)
	// The spec of OpenShift patches from the changed object to the one that is there.
	if err := i.plane.Client.Patch(i.Context(), initial.DeepCopy(), client.MergeFrom(changed), client.FieldOwner("extended.test")); err != nil {
		i.Fatal(err)
	}
	i.hasSpec(initial.Spec)
	if err := i.plane.Client.Patch(i.Context(), changed.DeepCopy(), client.MergeFrom(initial), client.FieldOwner("extended.test")); err != nil {
		i.Fatal(err)
	}
	i.hasSpec(initial.Spec)
	i.isAvailable(operands.Deployment)
}

// Facts about the webhooks of machine-api-operator, which those specs compare with.
const (
	mutatePath   = "/mutate-machine-openshift-io-v1beta1-"
	validatePath = "/validate-machine-openshift-io-v1beta1-"
)

func newMutating() *admissionregistrationv1.MutatingWebhookConfiguration {
	made := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "machine-api"}}
	for _, kind := range []string{"machine", "machineset"} {
		made.Webhooks = append(made.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: "default." + kind + ".machine.openshift.io", ClientConfig: calls(mutatePath + kind),
			Rules: about(kind, admissionregistrationv1.Create), FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	return made
}

func newValidating() *admissionregistrationv1.ValidatingWebhookConfiguration {
	made := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "machine-api"}}
	for _, kind := range []string{"machine", "machineset"} {
		made.Webhooks = append(made.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: "validation." + kind + ".machine.openshift.io", ClientConfig: calls(validatePath + kind),
			Rules: about(kind, admissionregistrationv1.Create, admissionregistrationv1.Update), FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	return made
}

func calls(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: namespace, Name: "machine-api-operator-webhook", Path: &path, Port: ptr.To[int32](443),
	}}
}

func about(kind string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{"machine.openshift.io"}, APIVersions: []string{"v1beta1"}, Resources: []string{kind + "s"},
	}}}
}

// isSynced waits until the configuration has all that is wanted, besides what has defaults and is
// injected.
func (i *installation) isSynced(want client.Object) {
	i.Helper()
	i.eventually("the webhook configuration is in sync", func() (bool, error) {
		found := want.DeepCopyObject().(client.Object)
		if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(want), found); err != nil {
			return false, err
		}
		switch want := want.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			return equality.Semantic.DeepDerivative(want.Webhooks, found.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks), nil
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			return equality.Semantic.DeepDerivative(want.Webhooks, found.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks), nil
		}
		return false, nil
	})
}

func (i *installation) recoversFromDeletion(want client.Object) {
	i.isSynced(want)
	found := want.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(want)
	if err := i.plane.Client.Get(i.Context(), key, found); err != nil {
		i.Fatal(err)
	}
	initial := found.GetUID()
	if err := i.plane.Client.Delete(i.Context(), found); err != nil {
		i.Fatal(err)
	}
	i.eventually("the webhook configuration has another UID", func() (bool, error) {
		found.SetUID("")
		err := i.plane.Client.Get(i.Context(), key, found)
		return client.IgnoreNotFound(err) == nil && found.GetUID() != initial, err
	})
	i.isSynced(want)
}

// bundles returns the CA of each webhook.
func bundles(of client.Object) (all [][]byte) {
	switch of := of.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for n := range of.Webhooks {
			all = append(all, of.Webhooks[n].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for n := range of.Webhooks {
			all = append(all, of.Webhooks[n].ClientConfig.CABundle)
		}
	}
	return all
}

// changeWebhooks sets the CA, the versions and the policy of each webhook, unless they are empty.
func changeWebhooks(of client.Object, bundle []byte, versions []string, policy *admissionregistrationv1.FailurePolicyType) {
	change := func(config *admissionregistrationv1.WebhookClientConfig, accepted *[]string, failure **admissionregistrationv1.FailurePolicyType) {
		if bundle != nil {
			config.CABundle = bundle
		}
		if versions != nil {
			*accepted, *failure = versions, policy
		}
	}
	switch of := of.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for n := range of.Webhooks {
			change(&of.Webhooks[n].ClientConfig, &of.Webhooks[n].AdmissionReviewVersions, &of.Webhooks[n].FailurePolicy)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for n := range of.Webhooks {
			change(&of.Webhooks[n].ClientConfig, &of.Webhooks[n].AdmissionReviewVersions, &of.Webhooks[n].FailurePolicy)
		}
	}
}

func (i *installation) maintainsWebhooks(want client.Object) {
	i.isSynced(want)
	initial := want.DeepCopyObject().(client.Object)
	read := func(into client.Object) {
		i.Helper()
		if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(want), into); err != nil {
			i.Fatal(err)
		}
	}
	patch := func(to, from client.Object, as string) {
		i.Helper()
		if err := i.plane.Client.Patch(i.Context(), to, client.MergeFrom(from), client.FieldOwner(as)); err != nil {
			i.Fatal(err)
		}
	}
	read(initial)
	injected := initial.DeepCopyObject().(client.Object)
	changeWebhooks(injected, i.plane.Config.CAData, nil, nil)
	patch(injected, initial, "service-ca")
	read(initial)
	changed := initial.DeepCopyObject().(client.Object)
	changeWebhooks(changed, nil, []string{"v1beta1"}, ptr.To(admissionregistrationv1.Fail))
	patch(changed, initial, "extended.test")
	i.isSynced(want)
	updated := want.DeepCopyObject().(client.Object)
	read(updated)
	before, after := bundles(initial), bundles(updated)
	if len(before) != len(after) {
		i.Fatalf("%d webhooks, want %d", len(after), len(before))
	}
	for n := range after {
		if len(after[n]) == 0 || !bytes.Equal(after[n], before[n]) {
			i.Errorf("the CA of webhook %d is %q, want %q", n, after[n], before[n])
		}
	}
}
