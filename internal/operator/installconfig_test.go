package operator

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

func infrastructureOf(t *testing.T, settings *corev1.ConfigMap, objects ...client.Object) (operands.Inputs, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := New(Options{Namespace: "ns", Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()})
	var in operands.Inputs
	err := r.infrastructure(t.Context(), &in, settings)
	return in, err
}

// The oldest manuals run kubemark's Machines on a plain cluster, with an Infrastructure or the
// installer's configuration made by hand.
func TestThePlatformOfPlainClusters(t *testing.T) {
	config := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-config-v1"}, Data: map[string]string{"install-config": text}}
	}
	plain := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	plain.Status.Platform = "AWS" //nolint:staticcheck // what clusters had before platformStatus
	for name, tc := range map[string]struct {
		setting string
		objects []client.Object
		want    []string
		handler bool
	}{
		"nothing":                  {},
		"kubemark":                 {objects: []client.Object{config("platform: {kubemark: {}}")}, want: []string{"--cluster-fact=platform=kubemark"}},
		"the installer's spelling": {objects: []client.Object{config("platform: {aws: {region: r}}")}, want: []string{"--cluster-fact=platform=AWS"}, handler: true},
		"a setting wins":           {setting: "GCP", objects: []client.Object{config("platform: {kubemark: {}}")}, want: []string{"--cluster-fact=platform=GCP"}, handler: true},
		"several are none":         {objects: []client.Object{config("platform: {aws: {}, gcp: {}}")}},
		"status.platform":          {objects: []client.Object{plain, config("platform: {kubemark: {}}")}, handler: true},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := infrastructureOf(t, &corev1.ConfigMap{Data: map[string]string{"platform": tc.setting}}, tc.objects...)
			if err != nil || !slices.Equal(in.Arguments, tc.want) || in.TerminationHandler != tc.handler || in.ServiceCA {
				t.Errorf("got %v, termination handler %t, service CA %t, %v", in.Arguments, in.TerminationHandler, in.ServiceCA, err)
			}
		})
	}
	_, err := infrastructureOf(t, &corev1.ConfigMap{}, config("platform: {"))
	if err == nil || !strings.Contains(err.Error(), "kube-system/cluster-config-v1: install-config is not YAML") {
		t.Errorf("got %v", err)
	}
}
