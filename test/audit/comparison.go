package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Permission is a role's grant of one verb on one resource, or on one object. The resource is in one of the rule's API
// groups.
type Permission struct {
	Role string
	// Namespace is where the grant applies; everywhere if empty.
	Namespace string
	Groups    []string
	Verb      string
	Resource  string
	// Name is the object's; any if empty.
	Name string
}

// String returns, for example, "Role default/x: patch events".
func (p Permission) String() string {
	role, name, _ := strings.Cut(p.Role, " ")
	if p.Namespace != "" {
		name = p.Namespace + "/" + name
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s %s", role, name, p.Verb, p.Resource, p.Name))
}

// Granted returns what a ServiceAccount may do by the bindings that name it.
func Granted(ctx context.Context, from client.Reader, namespace, account string) ([]Permission, error) {
	is := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == account
	}
	var everywhere rbacv1.ClusterRoleBindingList
	var somewhere rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&everywhere, &somewhere} {
		if err := from.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the bindings of %s/%s: %w", namespace, account, err)
		}
	}
	var found []Permission
	add := func(ref rbacv1.RoleRef, where string) error {
		rules, err := rulesOf(ctx, from, ref, where)
		for _, rule := range rules {
			found = append(found, expand(rule, ref.Kind+" "+ref.Name, where)...)
		}
		return err
	}
	for _, binding := range everywhere.Items {
		if slices.ContainsFunc(binding.Subjects, is) {
			if err := add(binding.RoleRef, ""); err != nil {
				return nil, err
			}
		}
	}
	for _, binding := range somewhere.Items {
		if slices.ContainsFunc(binding.Subjects, is) {
			if err := add(binding.RoleRef, binding.Namespace); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func rulesOf(ctx context.Context, from client.Reader, ref rbacv1.RoleRef,
	namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		err := from.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
		return role.Rules, err
	}
	role := &rbacv1.Role{}
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
	return role.Rules, err
}

// expand splits a rule into permissions.
func expand(rule rbacv1.PolicyRule, role, namespace string) []Permission {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var found []Permission
	for _, verb := range rule.Verbs {
		for _, resource := range rule.Resources {
			for _, name := range names {
				found = append(found, Permission{
					Role: role, Namespace: namespace, Groups: rule.APIGroups, Verb: verb,
					Resource: resource, Name: name,
				})
			}
		}
	}
	return found
}

// Comparison compares requests with permissions.
type Comparison struct {
	granted   []Permission
	used      []bool
	Forbidden []Call
	// Calls counts the requests.
	Calls int
}

func NewComparison(granted []Permission) *Comparison {
	return &Comparison{granted: granted, used: make([]bool, len(granted))}
}

// Add records a request.
func (c *Comparison) Add(call Call) {
	c.Calls++
	if call.Forbidden {
		c.Forbidden = append(c.Forbidden, call)
		return
	}
	for i := range c.granted {
		c.used[i] = c.used[i] || c.granted[i].allows(call)
	}
}

func (c *Comparison) Unused() []Permission {
	var found []Permission
	for i, permission := range c.granted {
		if !c.used[i] {
			found = append(found, permission)
		}
	}
	return found
}

// allows reports whether a request needs this permission, possibly granted by another role too.
func (p Permission) allows(c Call) bool {
	if p.Namespace != "" && p.Namespace != c.Namespace || p.Name != "" && p.Name != c.Name {
		return false
	}
	group, resource, verb := c.Group, c.Resource, c.Verb
	switch p.Verb {
	case "create":
		if c.made() {
			verb = "create"
		}
	case "escalate":
		// Needed to write a role by an account that lacks the role's rights.
		if c.Verb == "patch" {
			verb = "escalate"
		}
	case "bind":
		// Needed on the role, named like the binding, to write a binding.
		if c.Verb == "patch" && strings.HasSuffix(resource, "bindings") {
			verb, resource = "bind", strings.TrimSuffix(resource, "bindings")+"s"
		}
	}
	return p.Verb == verb && p.Resource == resource && slices.Contains(p.Groups, group)
}
