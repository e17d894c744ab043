package controlplane

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// rightsTimeout bounds how long the API server may take to apply a role.
const rightsTimeout = 10 * time.Second

// Grant grants a user at least one rule in a namespace, and waits until the API server applies the role.
func (p *ControlPlane) Grant(ctx context.Context, namespace, user string, rules ...rbacv1.PolicyRule) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := p.Create(ctx, role, binding); err != nil {
		return err
	}
	asked := authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0],
			Resource: rules[0].Resources[0],
		}}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, rightsTimeout, true,
		func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: asked}
			err := p.Client.Create(ctx, review)
			return review.Status.Allowed, err
		})
	if err != nil {
		return fmt.Errorf("waiting until %s may %s %s: %w", user, asked.ResourceAttributes.Verb,
			asked.ResourceAttributes.Resource, err)
	}
	return nil
}
