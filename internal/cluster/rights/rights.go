// Package rights compares the permissions that a module needs with those that OpenShift's
// CredentialsRequests grant. It reports what is certainly missing, and nothing where it cannot
// know: roles are not expanded, and conditions and single resources count as granted.
//
// # Permissions
//
//   - cloudcredential.openshift.io credentialsrequests in openshift-cloud-credential-operator: list
package rights

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

const (
	// namespace is where OpenShift keeps CredentialsRequests.
	namespace = "openshift-cloud-credential-operator"
	// maxAge is how old what was read may get.
	maxAge = time.Minute
	// timeout bounds the reading. Nothing depends on it, so it is short.
	timeout = 2 * time.Second
)

var requestList = schema.GroupVersionKind{Group: "cloudcredential.openshift.io", Version: "v1",
	Kind: "CredentialsRequestList"}

// Reader reads CredentialsRequests when it is asked and what it has is too old.
type Reader struct {
	client client.Reader
	clock  clock.PassiveClock

	mu    sync.Mutex
	last  []unstructured.Unstructured
	at    time.Time
	known bool
}

// New returns a Reader. The client reads the API server itself, never a cache; the clock is the
// system's when nil.
func New(reader client.Reader, now clock.PassiveClock) *Reader {
	if now == nil {
		now = clock.RealClock{}
	}
	return &Reader{client: reader, clock: now}
}

// Missing returns which of the rights the credentials in a Secret certainly lack, as one text for
// each CredentialsRequest; none where nothing is known, or nothing can be read.
func (r *Reader) Missing(ctx context.Context, needed []v1alpha1.ModuleRights, secret types.NamespacedName) []string {
	if r == nil || len(needed) == 0 || secret.Name == "" {
		return nil
	}
	return missing(needed, r.requests(ctx), secret)
}

func (r *Reader) requests(ctx context.Context) []unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known && r.clock.Since(r.at) < maxAge {
		return r.last
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(requestList)
	err := r.client.List(ctx, list, client.InNamespace(namespace))
	switch {
	case err == nil:
		r.last = list.Items
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), apierrors.IsForbidden(err):
		r.last = nil
	default:
		return r.last // it is asked again with the next Machine
	}
	r.at, r.known = r.clock.Now(), true
	return r.last
}

// merged returns one entry for each cloud, with each action once.
func merged(needed []v1alpha1.ModuleRights) []v1alpha1.ModuleRights {
	var all []v1alpha1.ModuleRights
	for _, rights := range needed {
		at := slices.IndexFunc(all, func(one v1alpha1.ModuleRights) bool { return one.Provider == rights.Provider })
		if at < 0 {
			all, at = append(all, v1alpha1.ModuleRights{Provider: rights.Provider}), len(all)
		}
		for _, action := range rights.Actions {
			if !slices.Contains(all[at].Actions, action) {
				all[at].Actions = append(all[at].Actions, action)
			}
		}
	}
	return all
}

// missing compares rights with requests.
func missing(needed []v1alpha1.ModuleRights, requests []unstructured.Unstructured,
	secret types.NamespacedName) []string {
	var texts []string
	for _, rights := range merged(needed) {
		var names []string
		granted := grants{}
		for _, request := range requests {
			if of(request, "secretRef", "namespace") != secret.Namespace || of(request, "secretRef", "name") != secret.Name ||
				of(request, "providerSpec", "kind") != rights.Provider+"ProviderSpec" {
				continue
			}
			names = append(names, request.GetName())
			granted.add(request)
		}
		if len(names) == 0 || granted.uncertain {
			continue
		}
		lacking := slices.DeleteFunc(slices.Clone(rights.Actions), granted.allows)
		if len(lacking) > 0 {
			slices.Sort(names)
			texts = append(texts,
				fmt.Sprintf("the CredentialsRequest %s, which grants what the Secret %s holds, lacks %s; add it there, or to the role of the credentials",
					strings.Join(names, ", "), secret.Name, strings.Join(lacking, ", ")))
		}
	}
	return texts
}

func of(request unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(request.Object, append([]string{"spec"}, path...)...)
	return text
}

// grants are the actions that requests allow.
type grants struct {
	allowed, denied []string
	// uncertain says that there are roles besides, which are not expanded.
	uncertain bool
}

func (g *grants) add(request unstructured.Unstructured) {
	provider, _, _ := unstructured.NestedMap(request.Object, "spec", "providerSpec")
	for _, roles := range []string{"predefinedRoles", "roleBindings"} {
		if list, _, _ := unstructured.NestedSlice(provider, roles); len(list) > 0 {
			g.uncertain = true
		}
	}
	permissions, _, _ := unstructured.NestedStringSlice(provider, "permissions")
	g.allowed = append(g.allowed, permissions...)
	statements, _, _ := unstructured.NestedSlice(provider, "statementEntries")
	for _, one := range statements {
		statement, _ := one.(map[string]any)
		actions, _, _ := unstructured.NestedStringSlice(statement, "action")
		effect, _, _ := unstructured.NestedString(statement, "effect")
		resource, _, _ := unstructured.NestedString(statement, "resource")
		condition, _, _ := unstructured.NestedMap(statement, "policyCondition")
		switch {
		case effect == "Allow":
			g.allowed = append(g.allowed, actions...)
		case effect == "Deny" && resource == "*" && len(condition) == 0:
			g.denied = append(g.denied, actions...)
		}
	}
}

// allows reports whether an action may be done.
func (g *grants) allows(action string) bool {
	matches := func(pattern string) bool { return matchesAction(pattern, action) }
	return slices.ContainsFunc(g.allowed, matches) && !slices.ContainsFunc(g.denied, matches)
}

// matchesAction reports whether a pattern with * and ? is for an action. Clouds do not care about
// case. What cannot be read counts as granted.
func matchesAction(pattern, action string) bool {
	// A star of path.Match ends at a slash, one of a cloud does not.
	plain := strings.NewReplacer("/", ":", "[", `\[`)
	matched, err := path.Match(plain.Replace(strings.ToLower(pattern)), plain.Replace(strings.ToLower(action)))
	return matched || err != nil
}
