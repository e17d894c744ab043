//go:build life

package life

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

const (
	noImage        = "a Node has no image"
	noUserDataHere = "a Node boots nothing"
	noCloud        = "the API server is no cloud"
	apiServer      = "[development cluster](development-cluster.md)"
)

var (
	kubemark = platform{
		name: "kubemark", module: "modules/kubemark", provider: "kubectl", infrastructure: apiServer, open: openKubemark,
		lacks: map[string]string{stepImage: noImage, stepUserData: noUserDataHere, stepCalls: noCloud},
	}
	kubemarkOnPulumi = platform{
		name: "kubemark on Pulumi", module: "stacks/kubemark", provider: "kubectl", infrastructure: apiServer, open: openKubemark,
		lacks: map[string]string{stepImage: noImage, stepUserData: noUserDataHere, stepCalls: noCloud, stepAdoption: noAdoption, stepInventory: noAdoption},
	}
)

// openKubemark has Machines sign in through a proxy, which can hold what makes a Node.
func openKubemark(w *world) *site {
	authority, err := w.lab.Cluster.CAData()
	if err != nil {
		w.t.Fatal(err)
	}
	proxy, err := apiproxy.Open(w.lab.Cluster.Server(), authority)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		proxy.Close()
		for _, bound := range []string{"life-token", "life-token-rotated"} {
			_ = w.force(context.Background(), secret(bound, nil)) // there may be one of them
		}
	})
	// A token is good as long as the Secret is there that it is bound to.
	login := func(ctx context.Context, bound string) (map[string][]byte, error) {
		if err := w.client.Create(ctx, secret(bound, nil)); err != nil {
			return nil, err
		}
		token, err := w.kubectl(ctx, "create", "token", "kubemark", "--bound-object-kind=Secret", "--bound-object-name="+bound)
		return map[string][]byte{"server": []byte(proxy.Address()), "ca.crt": proxy.Authority(), "token": []byte(strings.TrimSpace(string(token)))}, err
	}
	first, err := login(w.t.Context(), "life-token")
	if err != nil {
		w.t.Fatal(err)
	}
	look := func(ctx context.Context, name string) ([]string, error) {
		node := &corev1.Node{}
		if err := w.client.Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return []string{string(node.UID)}, nil
	}
	var held *apiproxy.Hold
	s := &site{
		nodes: true, credentials: secret("life-credentials", first),
		rotate: func(ctx context.Context) (map[string][]byte, error) {
			next, err := login(ctx, "life-token-rotated")
			return next, errors.Join(err, w.client.Delete(ctx, secret("life-token", nil)))
		},
		set: w.example(func(spec map[string]any) {
			spec["credentialsSecret"], spec["userDataSecret"] = map[string]any{"name": "life-credentials"}, map[string]any{"name": "worker-user-data"}
		}),
		change: with("zone", "zone-b"), refused: with("cpu", 8), invalid: with("memory", "plenty"), look: look,
		remove: func(ctx context.Context, name string) error {
			return client.IgnoreNotFound(w.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		},
		left: func(ctx context.Context, names []string) (found []string, err error) {
			for _, name := range names {
				ids, err := look(ctx, name)
				if err != nil {
					return nil, err
				}
				found = append(found, ids...)
			}
			return found, nil
		},
		slow: func(on bool) {
			if on {
				held = proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
			} else if held != nil {
				held.Lift()
			}
		},
	}
	if !w.stack() {
		s.copy = func(ctx context.Context, from, name string) (string, error) { return w.copyNode(ctx, from, name) }
	}
	return s
}

// copyNode makes a Node as another actuator of the cluster would.
func (w *world) copyNode(ctx context.Context, from, name string) (string, error) {
	node := &corev1.Node{}
	if err := w.client.Get(ctx, types.NamespacedName{Name: from}, node); err != nil {
		return "", err
	}
	node.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}
	for label := range node.Labels {
		if strings.HasPrefix(label, "machine-iac.io/") && label != "machine-iac.io/cluster-id" || label == corev1.LabelHostname {
			delete(node.Labels, label)
		}
	}
	node.Spec.ProviderID = "kubemark://made-elsewhere/" + name
	node.Status.Conditions = nil
	return node.Spec.ProviderID, w.client.Create(ctx, node)
}

// stack reports whether Machines run on Pulumi.
func (w *world) stack() bool { return strings.HasPrefix(w.platform.module, "stacks/") }
