package references

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Review returns why a user may not name a Secret for a use; nil where nothing is against it. The
// API server is asked about the user where that decides, and the error says that it did not
// respond.
func (p *Policy) Review(ctx context.Context, reviewer client.Client, user authenticationv1.UserInfo,
	secret client.Object, use Use) (*RefusedError, error) {
	refused := p.Check(secret, use)
	if refused == nil || !refused.Reviewed {
		return refused, nil
	}
	allowed, err := Allowed(ctx, reviewer, user, authorizationv1.ResourceAttributes{
		Namespace: secret.GetNamespace(), Verb: "get", Version: "v1", Resource: "secrets", Name: secret.GetName(),
	})
	if err != nil {
		return nil, fmt.Errorf("asking whether %s may get the Secret %s: %w", user.Username, secret.GetName(), err)
	}
	if allowed {
		return nil, nil
	}
	refused.Problem += fmt.Sprintf(", and %s may not get it", user.Username)
	refused.Fix = "ask a user who may write the Secret to run: " + refused.Command
	return refused, nil
}

// Allowed asks the API server whether a user may do something.
func Allowed(
	ctx context.Context, reviewer client.Client, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes,
) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra(user), ResourceAttributes: &what,
	}}
	err := reviewer.Create(ctx, review)
	return err == nil && review.Status.Allowed, err
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	all := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		all[key] = authorizationv1.ExtraValue(values)
	}
	return all
}
